"""Training by SequenceWithSoftmax on utterances with lattices: it learns, resumes exactly, and is configured by SGD."""

from dataclasses import replace

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import build_simple_network, simple_network_options
from acoustic.descriptions.mel.parse import parse_script
from acoustic.descriptions.mel.script import Editor
from acoustic.descriptions.ndl import MacroTable, Scope, shipped_macros
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from acoustic.training.configuration import training_options
from acoustic.training.options import TrainingOptions
from acoustic.training.parallel import ParallelOptions, executors
from acoustic.training.rules import NaturalGradient
from acoustic.training.sgd import train
from readers.config.config import Config
from readers.config.syntax import Source
from readers.errors import ConfigError, ModelError
from readers.minibatches.base import Minibatch
from tests.acoustic.nodes.lattices import SENONES, layout_with, random_lattice
from tests.acoustic.training.parallel.trainings import Here
from tests.acoustic.training.ring import Killed, dying

DIM = 6
pytestmark = pytest.mark.usefixtures("one_thread")


class LatticeReader:
    """Utterances whose frames are their reference senones in noise, two slots in a minibatch, in another order in each
    epoch."""

    in_sequence, cuts, is_supervised, parallel = True, False, True, (2,)

    def __init__(self, num_utterances=12, seed=0):
        rng = np.random.default_rng((seed, 1))
        centres = np.random.default_rng(9).normal(0, 1, (DIM, SENONES))
        self.lattices = [random_lattice(rng, int(rng.integers(8, 20)), 12) for _ in range(num_utterances)]
        self.features = [
            np.asfortranarray(centres[:, one.reference_senones] + rng.normal(0, 1, (DIM, one.num_frames)), np.float32)
            for one in self.lattices
        ]
        self.num_frames = sum(one.num_frames for one in self.lattices)

    def dims(self):
        return {"features": DIM, "labels": SENONES}

    def minibatches(self, epoch=0, minibatch_size=256, epoch_size=0):
        order = np.random.default_rng((5, epoch)).permutation(len(self.lattices))
        for start in range(0, len(order), 3):
            chosen = order[start : start + 3]
            layout = layout_with([[self.lattices[k] for k in part] for part in (chosen[:2], chosen[2:]) if len(part)])
            features = np.zeros((DIM, layout.num_columns), np.float32, order="F")
            labels = np.zeros((SENONES, layout.num_columns), np.float32, order="F")
            for (slot, step, count, lattice), k in zip(layout.supervisions, chosen):
                columns = (step + np.arange(count)) * layout.num_sequences + slot
                features[:, columns] = self.features[k]
                labels[lattice.reference_senones, columns] = 1
            yield Minibatch({"features": features, "labels": labels}, {}, layout.num_frames, layout)


def block(text, **more):
    config = Config.from_text(f"SGD=[\n{text}\n]\nBuilder=[\n{more.get('builder', '')}\n]", "net.cntk")
    return config.block("SGD"), config.block("Builder")


def network_with(criterion="SequenceWithSoftmax"):
    builder = block("", builder=f"layerSizes={DIM}:8:{SENONES}\ntrainingCriterion={criterion}\nneedPrior=true")[1]
    return build_simple_network(simple_network_options(builder), seed=2)


SMBR = (("seqGammarUsesMBR", True), ("seqGammarAMF", 2.0), ("seqGammarLMF", 1.0))


def options_for(epochs=3, rate=0.02, sequence=SMBR, **more):
    return TrainingOptions(max_epochs=epochs, learning_rates_per_sample=(rate,), sequence=sequence, **more)


def test_natural_gradient_takes_the_criterion():
    options = options_for(3, 0.01, rule=NaturalGradient())
    rows = train(network_with(), LatticeReader(), options).history
    assert rows[-1]["training"]["SequenceWithSoftmax"] < rows[0]["training"]["SequenceWithSoftmax"]


@pytest.mark.parametrize("criterion", ["mmi", "mpe", "smbr"])
def test_the_criterion_falls(criterion):
    network, log = network_with(), []
    sequence = (*SMBR[1:], ("sequenceCriterion", criterion))
    result = train(network, LatticeReader(), options_for(6, sequence=sequence), log=log.append)
    values = [row["training"]["SequenceWithSoftmax"] for row in result.history]
    assert values[-1] < 0.97 * values[0]
    expected = f"node 'SequenceWithSoftmax' (SequenceWithSoftmax): {criterion}, hSmoothingWeight=0.95, frameDrop"
    assert any(line.startswith(expected) for line in log)


def test_a_killed_training_goes_on_bit_for_bit(tmp_path):
    def run(name, reader):
        return train(network_with(), reader, options_for(3), LatticeReader(4, 1), model_path=tmp_path / name)

    whole = run("whole", LatticeReader())
    with pytest.raises(Killed):
        run("broken", dying(LatticeReader(), 1, 2))
    resumed = run("broken", LatticeReader())
    assert resumed.start_epoch == 1
    assert (tmp_path / "broken").read_bytes() == (tmp_path / "whole").read_bytes()
    assert (tmp_path / "broken.ckp").read_bytes() == (tmp_path / "whole.ckp").read_bytes()
    assert [row["training"] for row in resumed.history] == [row["training"] for row in whole.history]


def test_the_model_keeps_the_options_that_it_was_trained_with(tmp_path):
    train(network_with(), LatticeReader(), options_for(1), model_path=tmp_path / "net")
    settings = load_model(tmp_path / "net")["SequenceWithSoftmax"].settings
    assert settings["seqGammarUsesMBR"] is True
    assert (settings["seqGammarAMF"], settings["seqGammarLMF"]) == (2.0, 1.0)
    assert settings["hSmoothingWeight"] == 0.95  # not set by SGD: the node's own


def test_jobs_that_share_minibatches_learn_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "LocalProcesses", Here)
    alone = train(network_with(), LatticeReader(), options_for(2), model_path=tmp_path / "alone")
    parallel = ParallelOptions(2, averages=False)
    shared = train(network_with(), LatticeReader(), options_for(2), model_path=tmp_path / "shared", parallel=parallel)
    for node in alone.network.parameters():
        np.testing.assert_allclose(shared.network[node.name].value, node.value, rtol=1e-4, atol=1e-6)


def test_a_reader_without_lattices_is_refused_before_training(tmp_path):
    reader = LatticeReader()
    reader.is_supervised = False
    with pytest.raises(ModelError, match="reader gives nothing to compare utterances with; expected lattices="):
        train(network_with(), reader, options_for(1), model_path=tmp_path / "net")
    assert not list(tmp_path.glob("net*"))
    with pytest.raises(ModelError, match="cvReader gives nothing"):
        train(network_with(), LatticeReader(), options_for(1), reader, model_path=tmp_path / "net")


def test_options_for_a_network_without_the_criterion_are_reported():
    log = []
    network = network_with("CrossEntropyWithSoftmax")
    train(network, LatticeReader(), options_for(1), log=log.append)
    assert (
        "warning: seqGammarUsesMBR, seqGammarAMF, seqGammarLMF: the network has no criterion SequenceWithSoftmax; "
        "no effect"
    ) in log


def test_options_reach_a_criterion_within_a_sum():
    network = network_with()
    total = network.add("Plus", "total", "SequenceWithSoftmax", network.add("Constant", "nothing", value=0))
    train(network, LatticeReader(), options_for(1, train_criterion=total.name))
    assert network["SequenceWithSoftmax"].settings["seqGammarAMF"] == 2.0


# ---- the SGD block


def test_options_of_the_sgd_block():
    text = """maxEpochs=1
learningRatesPerSample=0.1
HSmoothingWeight=0.9
frameDropThresh=1e-8
doReferenceAlign=false
seqGammarUsesMBR=true
seqGammarAMF=12
seqGammarLMF=11
seqGammarWordPen=-0.5
seqGammarBMMIFactor=0.1
sequenceCriterion=MPE
silenceFrames=ignored
boostBySenone=true"""
    assert dict(training_options(block(text)[0]).sequence) == {
        "hSmoothingWeight": 0.9,
        "frameDropThresh": 1e-8,
        "doReferenceAlign": False,
        "seqGammarUsesMBR": True,
        "seqGammarAMF": 12.0,
        "seqGammarLMF": 11.0,
        "seqGammarWordPen": -0.5,
        "seqGammarBMMIFactor": 0.1,
        "sequenceCriterion": "mpe",
        "silenceFrames": "ignored",
        "boostBySenone": True,
    }
    assert training_options(block("maxEpochs=1\nlearningRatesPerSample=0.1")[0]).sequence == ()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hSmoothingWeight=1.1", r"net\.cntk:4: SGD\.hSmoothingWeight is 1\.1; expected 0 to 1"),
        ("seqGammarAMF=0", r"SGD\.seqGammarAMF is 0; expected above 0"),
        (
            "doReferenceAlign=true",
            r"SGD\.doReferenceAlign is true; expected false: the reference is the alignment",
        ),
        ("sequenceCriterion=mle", r"SGD\.sequenceCriterion is 'mle'; expected mmi or mpe or smbr"),
        ("seqGamarAMF=3", "seqGamarAMF is not known here; did you mean seqGammarAMF"),
    ],
)
def test_faults_of_the_sgd_block(line, message):
    with pytest.raises(ConfigError, match=message):
        training_options(block(f"maxEpochs=1\nlearningRatesPerSample=0.1\n{line}")[0])


# ---- network descriptions and editing


@pytest.mark.parametrize("prior", ["true", "false"])
def test_simple_network_builder_adds_the_scaled_log_likelihood(prior):
    text = f"layerSizes=4:6:{SENONES}\ntrainingCriterion=sequenceWithSoftmax\nneedPrior={prior}"
    network = build_simple_network(simple_network_options(block("", builder=text)[1]))
    (criterion,) = network.criteria
    assert network.evaluations == [criterion] == ["SequenceWithSoftmax"]
    assert [one.name for one in network[criterion].operands] == ["labels", "HLast", "ScaledLogLikelihood"]
    assert [one.name for one in network["ScaledLogLikelihood"].operands] == ["HLast", "LogOfPrior"]
    assert network.outputs == ["ScaledLogLikelihood"]


def test_simple_network_builder_with_another_evaluation():
    text = f"layerSizes=4:6:{SENONES}\ntrainingCriterion=sequenceWithSoftmax\nevalCriterion=errorPrediction"
    network = build_simple_network(simple_network_options(block("", builder=text)[1]))
    assert (network.criteria, network.evaluations) == (["SequenceWithSoftmax"], ["EvalErrorPrediction"])
    text = f"layerSizes=4:6:{SENONES}\nevalCriterion=sequenceWithSoftmax"
    network = build_simple_network(simple_network_options(block("", builder=text)[1]))
    assert (network.criteria, network.evaluations) == (["CrossEntropyWithSoftmax"], ["SequenceWithSoftmax"])


NDL = f"""
features=Input({DIM}, tag=feature)
labels=Input({SENONES}, tag=label)
L1=SBFF(features, 8, {DIM})
OL=BFF(L1.S, {SENONES}, 8)
cr=CrossEntropyWithSoftmax(labels, OL, tag=criteria)
Err=ErrorPrediction(labels, OL, tag=eval)
globPrior=Mean(labels)
logPrior=Log(globPrior)
scaledLogLikelihood=Minus(OL, logPrior, tag=output)
"""
REPLACE = """
m1 = LoadModel("net", format="cntk")
SetDefaultModel(m1)
SetProperty({old}, "criterion", false)
Remove({old})
{new} = SequenceWithSoftmax(labels, {top}, scaledLogLikelihood, seqGammarAMF=2, seqGammarLMF=1)
SetProperty({new}, criterion, true)
{more}
SaveModel(m1, "sequence.0", format="cntk")
"""


def of_ndl():
    network = Network("float", seed=2)
    Scope(network, MacroTable(shipped_macros())).evaluate(Source.from_text(NDL, "net.ndl"))
    network.validate()
    return network


FRAMES = "CrossEntropyWithSoftmax"
SIMPLE = {"old": FRAMES, "new": "CE", "top": "HLast"}


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (of_ndl, {"old": "cr", "new": "cr", "top": "OL.FF.P"}),
        (of_ndl, {"old": "cr", "new": "seWithSoftmax", "top": "OL.FF.P"}),
        (lambda: network_with(FRAMES), SIMPLE),
        (lambda: network_with(FRAMES), SIMPLE | {"more": f"Rename(CE, {FRAMES})"}),
    ],
    ids=["the same name", "as in the tests of CNTK", "SimpleNetworkBuilder", "renamed"],
)
def test_the_criterion_of_a_trained_network_is_replaced_by_a_script(tmp_path, monkeypatch, make, names):
    """As users of CNTK do it; training then continues with the edited model."""
    monkeypatch.chdir(tmp_path)
    trained = train(make(), LatticeReader(), options_for(1, sequence=())).network
    save_model(trained, "net")
    script = parse_script(Source.from_text(REPLACE.format(**({"more": ""} | names)), "replace.mel"))
    Editor(MacroTable(shipped_macros()), precision="float", log=print).run(script)
    edited = load_model("sequence.0")
    name = names["old"] if "more" in names else names["new"]
    assert edited.criteria == [name]
    assert edited[name].type_name == "SequenceWithSoftmax"
    result = train(make(), LatticeReader(), options_for(2, 0.002, ()), model_path="sequence")
    assert result.start_epoch == 0
    values = [row["training"][name] for row in result.history]
    assert values[1] < values[0]
    for node in trained.parameters():
        np.testing.assert_array_equal(load_model("sequence.0")[node.name].value, node.value)


def test_values_of_an_evaluation_are_those_of_training():
    """Both criteria of one network, the second only shown."""
    text = f"layerSizes={DIM}:8:{SENONES}\nevalCriterion=sequenceWithSoftmax"
    network = build_simple_network(simple_network_options(block("", builder=text)[1]), seed=2)
    options = options_for(1, 1e-12)
    shown = train(network, LatticeReader(), options, LatticeReader(4, 1)).history[0]["validation"]
    learned = train(network_with(), LatticeReader(), replace(options), LatticeReader(4, 1)).history[0]["validation"]
    assert shown["SequenceWithSoftmax"] == pytest.approx(learned["SequenceWithSoftmax"], rel=1e-5)
