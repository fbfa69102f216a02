"""The systems of recipe an4 on a toy corpus of tones: tied triphones, trained further with cross entropy and sMBR."""

import re

import pytest

from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from readers.config.config import load_config
from readers.htk.mlf import read_mlf
from recipes.an4.recipe import CONFIG
from recipes.cli.main import main
from recipes.tuning import Grid
from tests.recipes.systems.toy_an4 import make_corpus

SGD = "SGD=[maxEpochs=6;epochSize=0;minibatchSize=64;dropoutRate=0.1]"
SETTINGS = (
    f"LVCSR_Train=[SimpleNetworkBuilder=[layerSizes=1680:24:$NumSenones$];{SGD}]",
    "Sequence=[SGD=[maxEpochs=2;epochSize=0]]",
    "Further=[SGD=[maxEpochs=2;epochSize=0]]",
)


@pytest.mark.parametrize("criterion", ["mmi", "smbr"])
def test_the_script_replaces_the_criterion(tmp_path, criterion):
    network = Network(seed=1)
    for name in ("features", "labels"):
        network.add("Input", name, rows=3, tag=name.removesuffix("s"))
    network.add("Parameter", "W", rows=3, cols=3)
    network.add("Times", "HLast", "W", "features")
    network.add("Parameter", "prior", rows=3, cols=1)
    network.add("Minus", "ScaledLogLikelihood", "HLast", "prior")
    network.add("CrossEntropyWithSoftmax", "CrossEntropyWithSoftmax", "labels", "HLast")
    network.criteria = ["CrossEntropyWithSoftmax"]
    save_model(network, tmp_path / "old")
    paths = [f"Start={tmp_path / 'old'}", f"modelPath={tmp_path / 'new'}", f"ScriptDir={CONFIG}"]
    command = ["cntk", f"configFile={CONFIG / 'sequence.cntk'}", "command=Edit", f"Criterion={criterion}", *paths]
    assert main(command) == 0
    edited = load_model(tmp_path / "new.0")
    assert (edited.criteria, edited.evaluations) == (["Sequence"], ["CrossEntropyWithSoftmax"])
    assert edited["Sequence"].settings["sequenceCriterion"] == criterion


def test_both_criteria_have_the_same_schedule_and_data():
    config = load_config([f"configFile={CONFIG / 'sequence.cntk'}", "command=Edit:Sequence"])
    smbr, further = config.block("Sequence"), config.block("Further")
    for name in ("epochSize", "minibatchSize", "learningRatesPerSample", "momentumPerMB", "dropoutRate", "maxEpochs"):
        assert smbr.block("SGD").text(name) == further.block("SGD").text(name)
    assert smbr.block("reader").has_own("lattices")
    assert not further.block("reader").has_own("lattices")


def test_a_system_with_another_network_is_refused(tmp_path, capsys):
    assert main(["recipe", "an4", "--out", str(tmp_path), "--system", "smbr", "--network", "blstm"]) == 2
    assert "--system is given beside --network; expected only one" in capsys.readouterr().err


@pytest.mark.slow
def test_smbr_starts_from_tied_triphones(toy_run, tmp_path, monkeypatch, capsys):
    grid = Grid({"acweight": 0.15}, {"acweight": (0.15, 0.2)}, (12.0,), {"word_end_beam_frac": 1.0})
    monkeypatch.setattr("recipes.an4.grid.GRID", grid)
    monkeypatch.setattr("recipes.lvcsr.run.TREES", {"threshold": 60.0, "min_frames": 40.0})
    data, out = make_corpus(tmp_path / "corpus", per_speaker=4), tmp_path / "exp"
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    command = ["recipe", "an4", "--system", "smbr", "--data", str(data), "--out", str(out), "--workers", "1", *settings]
    assert main(command) == 0
    shown = capsys.readouterr().out.splitlines()
    systems = "tied triphones", "cross entropy on copies at other speeds", "sMBR on the same copies, as many epochs"
    for line, system in zip(shown[-3:], systems, strict=True):
        assert re.fullmatch(rf"WER [\d.]+%  [\d.]+%  \(flat LM, LM trained on the transcripts\): {system}", line), line
    home = out / "lvcsr"
    assert len(read_mlf(home / "copies" / "states.mlf")) == 2 * 8  # the development speaker is left out
    models = {name: (home / name / "model" / "tied.dnn").read_bytes() for name in ("natural", "further", "smbr")}
    assert len(set(models.values())) == 3
    assert (home / "further/model/tied.dnn.0").read_bytes() == models["natural"]
    assert main(command) == 0
    again = capsys.readouterr().out
    assert again.count("done before") == again.count("stage ") > 0


@pytest.mark.slow
def test_a_network_with_ivectors_is_trained_and_decoded(toy_run, tmp_path, monkeypatch, capsys):
    grid = Grid({"acweight": 0.15}, {"acweight": (0.15, 0.2)}, (12.0,), {"word_end_beam_frac": 1.0})
    monkeypatch.setattr("recipes.an4.grid.GRID", grid)
    monkeypatch.setattr("recipes.lvcsr.run.TREES", {"threshold": 60.0, "min_frames": 40.0})
    monkeypatch.setattr("recipes.an4.ivectors.GAUSSIANS", 4)
    monkeypatch.setattr("recipes.an4.ivectors.VALUES", 3)
    data, out = make_corpus(tmp_path / "corpus", per_speaker=4), tmp_path / "exp"
    settings = ["--set", "Hidden=24", "--set", f"Ivector_Train=[{SGD}]", "--workers", "1"]
    assert main(["recipe", "an4", "--system", "ivector", "--data", str(data), "--out", str(out), *settings]) == 0
    shown = capsys.readouterr().out.splitlines()
    match = re.fullmatch(r"WER ([\d.]+)%  ([\d.]+)%  \(.*\): tied triphones with i-vectors", shown[-1])
    assert max(map(float, match.groups())) <= 40, shown[-1]
    network = load_model(out / "lvcsr" / "ivector" / "model" / "tied.dnn")
    assert network.shapes["ivector"].rows == 3
