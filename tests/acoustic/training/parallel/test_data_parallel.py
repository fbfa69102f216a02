"""DataParallelSGD: several jobs share every minibatch, and give what one process gives."""

from dataclasses import replace

import numpy as np
import pytest

from acoustic.descriptions.ndl import Scope
from acoustic.network.network import Network
from acoustic.training.learner import Diverged
from acoustic.training.parallel import ParallelOptions, executors
from acoustic.training.parallel.shares import check_divisible
from acoustic.training.reporting.log import read_history
from acoustic.training.rules import AdaGrad, AdamW, FsAdaGrad, Momentum, NaturalGradient, RmsProp
from acoustic.training.sgd import train
from readers.config.syntax import Source
from readers.errors import ModelError
from readers.minibatches.base import Minibatch
from readers.minibatches.indicators import Indicators
from readers.minibatches.sequence_layout import SequenceLayout
from readers.minibatches.sequence_packing import pack_truncated
from readers.tables.tensor_file import load_tensors
from tests.acoustic.training.parallel.sources import CLASSES, DIM, small_network, small_options, write_task
from tests.acoustic.training.parallel.trainings import COUNT, Here, run, same

SHARED = ParallelOptions(2, averages=False)
RULES = [Momentum(), Momentum(nesterov=True), AdamW(), RmsProp(), AdaGrad(), FsAdaGrad()]


@pytest.fixture(autouse=True)
def here(monkeypatch):
    monkeypatch.setattr(executors, "LocalProcesses", Here)


@pytest.fixture
def examples(tmp_path):
    write_task(tmp_path / "e", COUNT)
    return tmp_path / "e"


def described(text: str, precision: str = "double") -> Network:
    network = Network(precision, seed=3)
    Scope(network).evaluate(Source.from_text(text, "n.ndl"))
    network.validate()
    return network


LAYERS = f"""
features=Input({DIM}, tag=feature)
labels=Input({CLASSES}, tag=label)
H=TBFF(features, 8, {DIM})
"""
FEED_FORWARD = f"{LAYERS}D=Dropout(H)\nCE=SMBFF(D, {CLASSES}, 8, labels, tag=criteria)\n"
ERRORS = "Err=ErrorPrediction(labels, CE.BFF.FF.P, tag=eval)"


def close(one: dict, other: dict) -> None:
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-9, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("jobs", [2, 3])
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_jobs_give_what_one_process_gives(examples, rule, jobs):
    """In double precision: parameters, state of the rule and figures, with dropout, clipping, L1, L2 and a last, short
    minibatch with fewer frames than jobs."""
    options = small_options(
        rule=rule,
        learning_rates_per_minibatch=0.02,
        minibatch_size=19,
        epoch_size=COUNT - 1 - (COUNT - 2) % 19,
        dropout_rate=0.3,
        l2_weight=0.001,
        clipping_threshold=0.05,
        **({} if "L1RegWeight" in rule.refuses else {"l1_weight": 0.001}),
    )
    network = f"{FEED_FORWARD}{ERRORS}"
    alone = run(examples, None, options, network=described(network))
    shared = run(examples, replace(SHARED, num_jobs=jobs), options, network=described(network), name="j")
    close(shared, alone)
    states = [load_tensors(examples.with_name(f"{name}.ckp")) for name in "mj"]
    close(states[1][0], states[0][0])
    histories = [read_history(examples.with_name(f"{name}.history.jsonl")) for name in "mj"]
    for one, other in zip(*histories, strict=True):
        assert one["samples"] == other["samples"]
        assert one["training"] == pytest.approx(other["training"], rel=1e-9)
    assert not examples.with_name("j.parallel").exists()


def test_threads_of_a_job_draw_the_masks_of_their_frames(examples):
    options = small_options(dropout_rate=0.3, minibatch_size=200)
    alone = run(examples, None, options, network=described(FEED_FORWARD))
    shared = run(examples, replace(SHARED, threads=2), options, network=described(FEED_FORWARD), name="j")
    close(shared, alone)


def test_a_resumed_training_equals_an_uninterrupted_one(examples):
    options = small_options(3)
    network = {"network": small_network(dropout=True)}
    whole = run(examples, SHARED, options, **network)
    run(examples, SHARED, small_options(2), name="r", network=small_network(dropout=True))
    (examples.with_name("r")).rename(examples.with_name("r.2"))
    (examples.with_name("r.ckp")).rename(examples.with_name("r.2.ckp"))
    assert same(run(examples, SHARED, options, name="r", network=small_network(dropout=True)), whole)


@pytest.mark.parametrize("averages", [True, False])
def test_epochs_before_the_start_are_those_of_one_process(examples, averages):
    alone = run(examples, None, small_options(1))
    parallel = ParallelOptions(2, 100, averages=averages, start_epoch=2)
    assert same(run(examples, parallel, small_options(1), name="j"), alone)
    longer = run(examples, parallel, small_options(2), name="k")
    assert same(load_tensors(examples.with_name("k.1"))[0], alone)
    assert not same(longer, run(examples, None, small_options(2), name="n"))


class Sentences:
    """Sequences of three words of a vocabulary that is large enough to be updated by columns."""

    words, in_sequence, partial = 3000, True, True
    num_frames = 60
    lengths = (3, 5, 1, 4, 2)

    def dims(self):
        return {"features": self.words, "labels": CLASSES}

    def minibatches(self, epoch=0, minibatch_size=0, epoch_size=0):
        for number in range(4):
            rng = np.random.default_rng((epoch, number))
            layout = SequenceLayout.of_lengths(self.lengths)
            numbers = np.where(layout.gaps, -1, rng.integers(0, 40, layout.gaps.shape)).reshape(1, -1)
            labels = np.where(layout.gaps, -1, rng.integers(0, CLASSES, layout.gaps.shape)).reshape(1, -1)
            matrices = {
                "features": Indicators(numbers.astype(np.int32), self.words),
                "labels": np.asfortranarray(np.asarray(Indicators(labels.astype(np.int32), CLASSES))),
            }
            yield Minibatch(matrices, {}, layout.num_frames, layout)


RECURRENT = f"""
features=Input(3000, tag=feature)
labels=Input({CLASSES}, tag=label)
E=Parameter(5, 3000)
H=LSTM(LookupTable(E, features), 4)
W=Parameter({CLASSES}, 4)
CE=CrossEntropyWithSoftmax(labels, Times(Scale(2, W), H), tag=criteria)
"""


@pytest.mark.parametrize("jobs", [2, 3, 9])
def test_sequences_are_divided_whole(jobs):
    """Word vectors that do not occur in a minibatch keep their values in spite of momentum, as in one process."""
    options = small_options(3, momentum_per_minibatch=0.8)
    values, validated = [], []
    for parallel in (None, replace(SHARED, num_jobs=jobs)):
        network = described(RECURRENT)
        before = network["E"].value.copy()
        history = train(network, Sentences(), options, Sentences(), parallel=parallel).history
        validated.append([row["validation"]["CE"] for row in history])
        assert np.array_equal(network["E"].value[:, 40:], before[:, 40:])
        values.append({node.name: node.value for node in network.parameters()})
    close(values[1], values[0])
    assert validated[1] == pytest.approx(validated[0], rel=1e-9)


class Pieces:
    """Pieces of sequences in four slots, which the next minibatch continues; with `ahead`, frames as context."""

    in_sequence, partial, cuts = True, True, True
    lengths = (9, 3, 14, 1, 6, 11, 2, 8)
    num_frames = sum(lengths)

    def __init__(self, ahead):
        self.ahead = ahead

    def dims(self):
        return {"features": DIM, "labels": CLASSES}

    def minibatches(self, epoch=0, minibatch_size=0, epoch_size=0):
        rng = np.random.default_rng(epoch)
        xs = [rng.standard_normal((DIM, count)) for count in self.lengths]
        labels = [np.eye(CLASSES)[:, rng.integers(0, CLASSES, count)] for count in self.lengths]
        for layout, pieces in pack_truncated(self.lengths, 4, 3, self.ahead):
            shape = (layout.num_steps, layout.num_sequences)
            columns = {"features": np.zeros((DIM, *shape)), "labels": np.zeros((CLASSES, *shape))}
            for sequence, first, count, slot, step in pieces:
                for name, sources in (("features", xs), ("labels", labels)):
                    columns[name][:, step : step + count, slot] = sources[sequence][:, first : first + count]
            matrices = {name: np.asfortranarray(one.reshape(len(one), -1)) for name, one in columns.items()}
            yield Minibatch(matrices, {}, layout.num_frames, layout)


@pytest.mark.parametrize("jobs", [2, 3])
@pytest.mark.parametrize("ahead", [0, 2])
def test_sequences_continue_in_the_next_minibatch(jobs, ahead):
    layer = "BLSTM" if ahead else "LSTM"
    top = f"H=Plus({layer}(features, 4), PastValue({8 if ahead else 4}, H, timeStep=2))"
    width = 8 if ahead else 4
    text = f"{LAYERS.rpartition('H=')[0]}{top}\nCE=SMBFF(H, {CLASSES}, {width}, labels, tag=criteria)\n"
    values = []
    for parallel in (None, replace(SHARED, num_jobs=jobs)):
        network = described(text)
        history = train(network, Pieces(ahead), small_options(2), parallel=parallel).history
        values.append({node.name: node.value for node in network.parameters()})
        values[-1] |= {"history": np.array([row["training"]["CE.SM"] for row in history])}
    close(values[1], values[0])


def test_criteria_may_be_weighted_sums(examples):
    text = f"{LAYERS}CE=SMBFF(H, {CLASSES}, 8, labels)\nQ=MSEBFF(H, {CLASSES}, 8, labels)"
    text += "\nJ=WtObjFcn(CE, 0.3, Q, 2, tag=criteria)"
    alone = run(examples, None, network=described(text))
    close(run(examples, SHARED, network=described(text), name="j"), alone)


NOT_DIVISIBLE = {
    "BatchNormalization": (
        "B=BatchNormalization(H, Parameter(8, init=fixedValue, value=1), Parameter(8), "
        "Parameter(8, needGradient=false), Parameter(8, needGradient=false))\n"
        f"CE=SMBFF(B, {CLASSES}, 8, labels, tag=criteria)",
        "node 'B' .BatchNormalization.: depends on all frames of a minibatch",
    ),
    "log of a sum": (
        f"CE=SMBFF(H, {CLASSES}, 8, labels)\nJ=Log(CE, tag=criteria)",
        "node 'J' .Log.: depends on all frames of a minibatch",
    ),
    "penalty": (
        f"CE=SMBFF(H, {CLASSES}, 8, labels)\nJ=Plus(CE, MatrixL2Reg(H.BFF.W), tag=criteria)",
        "node 'J' .Plus.: depends on all frames of a minibatch",
    ),
    "constant": (f"CE=SMBFF(H, {CLASSES}, 8, labels)\nJ=Plus(CE, 7, tag=criteria)", "node 'J' .Plus."),
    "product": (f"CE=SMBFF(H, {CLASSES}, 8, labels)\nJ=ElementTimes(CE, CE, tag=criteria)", "node 'J' .ElementTimes."),
}


@pytest.mark.parametrize("title", NOT_DIVISIBLE)
def test_networks_whose_frames_depend_on_each_other_are_refused(title):
    text, message = NOT_DIVISIBLE[title]
    network = described(f"{LAYERS}{text}")
    with pytest.raises(ModelError, match=f"^n.ndl:.*{message}.*; expected parallelizationMethod=ModelAveragingSGD"):
        check_divisible(network, network.criteria, small_options())


def test_what_is_not_built_is_refused(examples):
    network = described(RECURRENT.replace(", H)", ", Dropout(H))"))
    check_divisible(network, network.criteria, small_options())
    with pytest.raises(ModelError, match="dropout of sequences with DataParallelSGD is not built"):
        check_divisible(network, network.criteria, small_options(dropout_rate=0.1))
    with pytest.raises(ModelError, match="DataParallelSGD with gradUpdateType=NaturalGradient, which needs the frames"):
        run(examples, SHARED, small_options(rule=NaturalGradient()))


def test_faults_name_minibatch_and_job(examples):
    with pytest.raises(Diverged, match=r"^epoch 1, (minibatch \d+: \w+ is (nan|inf)|last minibatch: parameter)"):
        run(examples, SHARED, small_options(learning_rates_per_minibatch=3e38))
    assert not examples.with_name("m.parallel").exists()
