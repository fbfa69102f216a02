"""The lvcsr recipe on a toy corpus of tones: triphones tied, trained, decoded, aligned, trained again."""

import re

import pytest

from decoder import Recognizer
from readers.config.config import load_config
from readers.htk.edit_script import read_edit_script
from readers.htk.frame_labels import read_state_list
from readers.htk.mlf import read_mlf
from readers.htk.mmf import read_mmf
from recipes.an4.corpus import find_sets
from recipes.an4.recipe import CONFIG as AN4_CONFIG
from recipes.cli.main import main
from recipes.lvcsr.run import CONFIG, QUESTIONS
from recipes.tuning import Grid
from tests.recipes.systems.small_system import STATES
from tests.recipes.systems.toy_an4 import make_corpus


def test_network_is_that_of_an4_but_for_its_outputs():
    settings = ["ExpDir=exp", "NumSenones=7"]
    ours = load_config([f"configFile={CONFIG / 'tied.cntk'}", *settings]).block("LVCSR_Train")
    an4 = load_config([f"configFile={AN4_CONFIG / 'an4.cntk'}", *settings]).block("AN4_Train")
    assert ours.block("SimpleNetworkBuilder").text("layerSizes") == "1680:768*4:7"
    for name in ("learningRatesPerMB", "minibatchSize", "maxEpochs", "dropoutRate", "epochSize"):
        assert ours.block("SGD").text(name) == an4.block("SGD").text(name)
    for reader in ("reader", "cvReader"):
        features = [block.block(reader).block("features").text("scpFile") for block in (ours, an4)]
        assert features[0] == features[1]


def test_training_on_changes_the_rates_alone():
    files = (str(CONFIG / "tied.cntk"), str(CONFIG / "again.cntk"))
    first, again = (load_config([f"configFile={'+'.join(files[:n])}", "ExpDir=exp", "NumSenones=7"]) for n in (1, 2))
    rates = again.block("LVCSR_Train").block("SGD")
    assert len(rates.text("learningRatesPerMB").split(":")) == rates.int("maxEpochs") == 5
    for block, name in (("SGD", "momentumPerMB"), ("SimpleNetworkBuilder", "layerSizes")):
        texts = [config.block("LVCSR_Train").block(block).text(name) for config in (first, again)]
        assert texts[0] == texts[1]


def test_natural_gradient_takes_half_the_epochs():
    files = [CONFIG / "tied.cntk", CONFIG / "natural.cntk"]
    configs = [load_config([f"configFile={'+'.join(map(str, files[:n]))}", "ExpDir=exp"]) for n in (1, 2)]
    momentum, natural = (config.block("LVCSR_Train").block("SGD") for config in configs)
    assert 2 * natural.int("maxEpochs") == momentum.int("maxEpochs")
    assert natural.text("gradUpdateType") == "NaturalGradient"
    assert natural.text("minibatchSize") == momentum.text("minibatchSize")


def test_questions_come_in_pairs_of_left_and_right():
    questions = read_edit_script(QUESTIONS).questions
    left = [name for name in questions if name.startswith("L_")]
    assert 2 * len(left) == len(questions)
    for name in left:
        mirrored = {f"*+{pattern.removesuffix('-*')}" for pattern in questions[name].patterns}
        assert mirrored == set(questions[f"R_{name[2:]}"].patterns)


SGD = "SGD=[maxEpochs=8;epochSize=0;minibatchSize=64;learningRatesPerMB=0.2]"
SETTINGS = (
    f"AN4_Train=[SimpleNetworkBuilder=[layerSizes=1680:24:$NumStates$];{SGD}]",
    f"LVCSR_Train=[SimpleNetworkBuilder=[layerSizes=1680:24:$NumSenones$];{SGD}]",
)


@pytest.mark.slow
def test_recipe_ties_trains_decodes_aligns_and_trains_again(toy_run, tmp_path, monkeypatch, capsys):
    grid = Grid({"acweight": 0.15}, {"acweight": (0.15, 0.2)}, (12.0,), {"word_end_beam_frac": 1.0})
    monkeypatch.setattr("recipes.an4.grid.GRID", grid)
    data, out = make_corpus(tmp_path / "corpus"), tmp_path / "exp"
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    settings += ["--threshold", "60", "--min-frames", "40", "--workers", "1"]
    command = ["recipe", "lvcsr", "--data", str(data), "--out", str(out), *settings]
    assert main(command) == 0
    shown = capsys.readouterr().out.splitlines()
    home = out / "lvcsr"
    senones = read_state_list(home / "tied/hmms/senones.list")
    assert len(senones) > len(STATES)
    both = "(flat LM, LM trained on the transcripts)"
    systems = [
        f"monophones, {len(STATES)} states",
        f"tied triphones, {len(senones)} states",
        "the same with natural gradient, half the epochs",
        "trained further on the same alignments",
        "trained further on its own alignments",
    ]
    for line, system in zip(shown[-5:], systems, strict=True):
        match = re.fullmatch(rf"WER ([\d.]+)%  ([\d.]+)%  {re.escape(both)}: {system}", line)
        assert match, line
        assert max(map(float, match.groups())) <= 30, shown[-5:]  # of 20 words; some hang on rounding
    assert set(read_mmf(home / "tied/hmms/hmmdefs").macros["s"]) == set(senones)
    within = next(line for line in shown if line.startswith("boundaries within"))
    assert float(within.split()[7].rstrip("%,")) > 90  # 20 ms
    aligned = read_mlf(home / "align/states.mlf")
    assert len(aligned) == len(read_mlf(out / "labels/states.mlf")) == 24
    assert {label.name for labels in aligned.values() for label in labels} <= set(senones)
    tied, continued, realigned = (
        (home / system / "model/tied.dnn").read_bytes() for system in ("tied", "continued", "realigned")
    )
    assert (
        tied == (home / "continued/model/tied.dnn.0").read_bytes() == (home / "realigned/model/tied.dnn.0").read_bytes()
    )
    assert tied not in (continued, realigned)  # which are the same where its own alignments are those it had
    recognizer, hypotheses = Recognizer.load(out / "lvcsr.argo"), read_mlf(home / "tied/decode/trained/test.mlf")
    assert [one.test_set for one in recognizer.calibration.measured] == ["test"]
    for utterance in find_sets(data)["test"]:
        labels = hypotheses.lookup(f"{utterance.name}.lab")
        assert recognizer.transcribe(utterance.audio).text == " ".join(label.name for label in labels)
    assert main(command) == 0
    assert capsys.readouterr().out.count("done before") == 29
    assert main([*command[:5], str(out), *settings, "--to", "score", "--threshold", "30"]) == 0
    assert capsys.readouterr().out.count("done before") == 8
