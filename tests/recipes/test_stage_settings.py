"""The settings on which a stage depends: those that its commands read, and the content of its files."""

import json
from pathlib import Path

import pytest

import recipes
from readers.errors import ConfigError
from recipes.cli.main import main
from recipes.simple2d import data
from recipes.stage_settings import cntk_settings, extends_training, file_settings, joint_checksum
from recipes.timit import run as timit

CONFIGURATION = """
ExpDir = exp
HiddenDim = 8
BeamDepth = 2
command = Train:Decode
modelPath = $ExpDir$/model
SGD = [ maxEpochs = 4 ]
Train = [
    action = train
    numCPUThreads = 2
    layerSizes = 2:$Hidden2$:2
    reader = $reader$
    description = $ExpDir$/net.ndl
]
Hidden2 = $HiddenDim$
reader = [ file = $ExpDir$/data ]
Decode = [ action = decode; beamDepth = $BeamDepth$ ]
"""


@pytest.fixture
def settings(tmp_path):
    """A function that returns the settings of commands, with values that replace those of the file."""
    (tmp_path / "net.ndl").write_text("network")
    (tmp_path / "net.cntk").write_text(CONFIGURATION)

    def read(commands, *overrides):
        return cntk_settings([f"configFile={tmp_path / 'net.cntk'}", f"ExpDir={tmp_path}", f"command={commands}",
                              *overrides])  # fmt: skip

    return read


def test_settings_are_those_that_a_command_can_read(settings):
    training = settings("Train")
    assert {name: training[name] for name in ("HiddenDim", "SGD.maxEpochs", "modelPath", "reader.file")} == {
        "HiddenDim": "8", "SGD.maxEpochs": "4", "modelPath": "$ExpDir$/model", "reader.file": "$ExpDir$/data"
    }  # fmt: skip
    assert not any(name.startswith(("Decode", "BeamDepth", "ExpDir")) or "Threads" in name for name in training)
    decoding = settings("Decode")
    assert decoding["BeamDepth"] == "2"
    assert not any(name.startswith(("Train.", "HiddenDim", "Hidden2")) for name in decoding)
    assert {"BeamDepth", "HiddenDim"} < set(settings("Train:Decode"))


@pytest.mark.parametrize(
    ("override", "trains", "decodes"),
    [
        ("Train=[SGD=[maxEpochs=5]]", True, False),
        ("HiddenDim=9", True, False),
        ("Decode=[beamDepth=3]", False, True),
        ("BeamDepth=3", False, True),
        ("modelPath=other", True, True),
        ("Train=[numCPUThreads=1]", False, False),
        ("ExpDir=.", False, False),
        ("Train=[layerSizes=$unset$]", True, False),
    ],
)
def test_an_override_changes_the_settings_of_the_commands_that_read_it(settings, override, trains, decodes):
    if not override.startswith("ExpDir"):
        assert (settings("Train") != settings("Train", override)) == trains
    assert (settings("Decode") != settings("Decode", override)) == decodes


def test_networks_are_compared_by_their_content(settings, tmp_path):
    before = settings("Train")
    (tmp_path / "net.ndl").write_text("other network")
    after = settings("Train")
    assert [name for name in before if before[name] != after[name]] == ["Train.description"]
    assert before["Train.description"].startswith("net.ndl with checksum ")


def test_a_configuration_that_cannot_be_read_is_refused(settings):
    with pytest.raises(ConfigError, match="x"):
        settings("Train", "x=[")


def test_files_are_compared_by_their_content(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    first = file_settings(tmp_path / "a.txt", None)
    (tmp_path / "a.txt").write_text("b")
    assert list(first) == list(file_settings(tmp_path / "a.txt")) == ["checksum of a.txt"]
    assert first != file_settings(tmp_path / "a.txt")


def test_each_of_several_files_of_a_name_counts(tmp_path):
    paths = [tmp_path / folder / "words" for folder in "ab"]
    for path in paths:
        path.parent.mkdir()
        path.write_text("a")
    seen = set()
    for path in paths:
        seen.add(str(file_settings(*paths)))
        path.write_text("b")
    assert len(seen | {str(file_settings(*paths))}) == 3


def test_a_joint_checksum_tells_names_and_contents(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(name)
    first, second = tmp_path / "a", tmp_path / "b"
    checksums = [
        joint_checksum(files) for files in ({"x": first}, {"y": first}, {"x": second}, {"x": first, "y": second})
    ]
    assert len(set(checksums)) == 4
    assert joint_checksum({"x": first}) == checksums[0]


SGD = "maxEpochs=4;learningRatesPerMB=0.8:0.4*2:0.2"


@pytest.mark.parametrize(
    ("later", "extends"),
    [
        ("maxEpochs=5", True),
        ("maxEpochs=4", False),
        ("maxEpochs=3", False),
        ("maxEpochs=x", False),
        ("maxEpochs=$n$", False),
        ("maxEpochs=6;learningRatesPerMB=0.8:0.4:0.4:0.2*2:0.1", True),
        ("maxEpochs=6;learningRatesPerMB=0.8:0.4:0.4:0.1", False),
        ("maxEpochs=6;learningRatesPerMB=0.8:0.4", False),
        ("maxEpochs=6;learningRatesPerMB=x", False),
        ("maxEpochs=6;L2RegWeight=0.1", False),
        ("learningRatesPerMB=0.8:0.4*2:0.2:0.1", False),
    ],
)
def test_a_training_with_more_epochs_and_the_same_values_before_goes_on(settings, later, extends):
    before = settings("Train", f"Train=[SGD=[{SGD}]]")
    assert extends_training(before, settings("Train", f"Train=[SGD=[{SGD};{later}]]")) == extends


def test_a_training_does_not_go_on_if_anything_else_depends_on_its_epochs(settings):
    def extends(commands, setting, *more):
        before, now = (settings(commands, f"Train=[SGD=[{SGD};{setting}]]", *both) for both in ((), more))
        return extends_training(before, now | {"Train.SGD.maxEpochs": "9"})

    assert extends("Train", "dropoutRate=0")
    assert not extends("Train", "finalLearningRate=0.1")
    assert not extends("Train", "autoAdjust=[autoAdjustLR=none]")
    assert not extends("Train", "parallelTrain=[numJobs=2]")
    assert not extends("Train:Decode", "dropoutRate=0")
    assert not extends("Train", "dropoutRate=0", "HiddenDim=9")


def test_set_replaces_settings_of_the_training_of_timit(tmp_path):
    def settings(*overrides):
        stages = timit.Recipe(timit.RecipeOptions(out=tmp_path), "demo", overrides).stages()
        return {stage.name: stage.settings for stage in stages}

    before, after = settings(), settings("TIMIT_TrainSimple=[SGD=[maxEpochs=3]]")
    assert [name for name in before if before[name] != after[name]] == ["train"]
    assert after["train"]["TIMIT_TrainSimple.SGD.maxEpochs"] == "3"


@pytest.mark.slow
def test_a_recipe_repeats_what_an_option_changes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(data, "NUM_TRAIN", 100)
    monkeypatch.setattr(data, "NUM_TEST", 50)

    def stages_run(*overrides):
        short = ["Simple_Demo=[SGD=[maxEpochs=2]]", *overrides]
        words = [word for override in short for word in ("--set", override)]
        assert main(["recipe", "simple2d", "--out", str(tmp_path), *words]) == 0
        lines = [line for line in capsys.readouterr().out.splitlines() if line.endswith("done before")]
        kept = {line.split()[2].rstrip(":") for line in lines}
        return [name for name in ("data", "train", "output", "pictures") if name not in kept]

    assert stages_run() == ["data", "train", "output", "pictures"]
    assert stages_run() == []
    assert stages_run("Simple_Demo_Output=[minibatchSize=7]") == ["output", "pictures"]
    assert stages_run("Simple_Demo=[SGD=[maxEpochs=3]]") == ["train", "output", "pictures"]


@pytest.mark.slow
def test_a_recipe_with_more_epochs_ends_as_one_that_had_them_from_the_start(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(data, "NUM_TRAIN", 100)
    monkeypatch.setattr(data, "NUM_TEST", 50)

    def run(out, epochs, rates):
        sgd = f"Simple_Demo=[SGD=[maxEpochs={epochs};learningRatesPerMB={rates};keepModelFiles=true]]"
        assert main(["recipe", "simple2d", "--out", str(out), "--set", sgd]) == 0
        models = {path.name: path for path in (out / "models").iterdir() if path.suffix not in (".png", ".config")}
        history = models.pop("simple.dnn.history.jsonl").read_text().splitlines()
        rows = [json.loads(line) | {"seconds": 0} for line in history]
        return {name: path.read_bytes() for name, path in models.items() if path.is_file()}, rows, capsys.readouterr()

    whole, whole_rows, _ = run(tmp_path / "whole", 5, "0.8:0.4*2:0.1")
    run(tmp_path / "parts", 2, "0.8:0.4")
    run(tmp_path / "parts", 3, "0.8:0.4")
    parts, rows, shown = run(tmp_path / "parts", 5, "0.8:0.4*2:0.1")
    assert "the training in " + str(tmp_path / "parts" / "models") + " continues\n" in shown.out
    assert "Starting from " + str(tmp_path / "parts" / "models" / "simple.dnn.3") in shown.err
    assert parts == whole
    assert rows == whole_rows
    _, _, shown = run(tmp_path / "parts", 4, "0.8:0.4*2:0.1")
    assert "maxEpochs was 5, is 4; the models and checkpoints in " in shown.out


def test_recipes_count_the_cores_that_they_may_use():
    assert not [path for path in Path(recipes.__file__).parent.rglob("*.py") if "cpu_count" in path.read_text()]


def test_lists_of_earlier_stages_are_not_recorded(settings, tmp_path):
    lists = ("exp/lists/train.scp", f"{tmp_path}/exp/lists/train.scp")
    one, other = (settings("Train", f"TrainList={each}") for each in lists)
    assert one == other
