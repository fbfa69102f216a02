"""The cntk command's training actions: adapt, cv, gradientCheck, and learners chosen in a configuration."""

import re
from pathlib import Path

import numpy as np
import pytest

from acoustic.network.model_file import load_model
from acoustic.training.reporting.log import read_history
from recipes.cli import cntk

CONFIG = """
command=Train
deviceId=-1
precision=float
modelPath=$Exp$/models/net
READER=[
  readerType=UCIFastReader
  file=$Exp$/train.txt
  features=[dim=2;start=0]
  labels=[start=2;dim=1;labelDim=3;labelMappingFile=$Exp$/mapping.txt]
]
Train=[
  action=train
  SimpleNetworkBuilder=[
    layerSizes=2:10:3
    trainingCriterion=CrossEntropyWithSoftmax
    evalCriterion=ErrorPrediction
    layerTypes=Tanh
    initValueScale=8
    applyMeanVarNorm=true
    needPrior=true
  ]
  SGD=[
    minibatchSize=20
    learningRatesPerMB=0.4
    momentumPerMB=0.5
    maxEpochs=5
  ]
  reader=[
    readerType=UCIFastReader
    file=$Exp$/train.txt
    features=[dim=2;start=0]
    labels=[start=2;dim=1;labelDim=3;labelMappingFile=$Exp$/mapping.txt]
  ]
]
Adapt=[
  action=adapt
  originalModelFileName=$Exp$/models/net
  modelPath=$Exp$/models/adapted
  refNodeName=PosteriorProb
  SGD=[
    minibatchSize=20
    learningRatesPerMB=0.4
    momentumPerMB=0.5
    maxEpochs=8
    adaptationRegType=KL
    adaptationRegWeight=0
  ]
  reader=[
    readerType=UCIFastReader
    file=$Exp$/moved.txt
    features=[dim=2;start=0]
    labels=[start=2;dim=1;labelDim=3;labelMappingFile=$Exp$/mapping.txt]
  ]
]
Cv=[
  action=cv
  crossValidationInterval=1:1:5
  reader=[
    readerType=UCIFastReader
    file=$Exp$/moved.txt
    features=[dim=2;start=0]
    labels=[start=2;dim=1;labelDim=3;labelMappingFile=$Exp$/mapping.txt]
  ]
]
"""
CENTRES = np.array([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])


def write_points(path: Path, shift: float, seed: int) -> None:
    """Points of three classes around CENTRES, moved by `shift` in both coordinates."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, 200)
    points = CENTRES[labels] + 0.8 * rng.normal(size=(200, 2)) + shift
    path.write_text("".join(f"{x:.5f} {y:.5f} {label}\n" for (x, y), label in zip(points, labels)))


@pytest.fixture
def corpus(tmp_path) -> Path:
    write_points(tmp_path / "train.txt", 0.0, 1)
    write_points(tmp_path / "moved.txt", 1.5, 2)
    (tmp_path / "mapping.txt").write_text("0\n1\n2\n")
    (tmp_path / "net.cntk").write_text(CONFIG)
    return tmp_path


def run(corpus: Path, *arguments: str) -> int:
    return cntk.main([f"configFile={corpus / 'net.cntk'}", f"Exp={corpus}", *arguments])


def error_line(capsys) -> str:
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    return lines[0]


def test_adapt_learns_and_its_weight_holds_it_near_the_original(corpus, capsys):
    assert run(corpus) == 0
    original = load_model(corpus / "models" / "net")
    distances = []
    for weight in ("0", "0.5", "1"):
        path = corpus / "models" / f"adapted-{weight.replace(chr(46), chr(45))}"
        assert run(corpus, "command=Adapt", f"Adapt=[modelPath={path};SGD=[adaptationRegWeight={weight}]]") == 0
        adapted = load_model(path)
        assert (path.with_name(f"{path.name}.0")).exists()
        np.testing.assert_array_equal(adapted["Prior"].value, original["Prior"].value)  # statistics are those it had
        distances.append(sum(np.abs(adapted[w].value - original[w].value).sum() for w in ("W0", "W1", "B0", "B1")))
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 0.01 * distances[0]  # its own outputs as labels: there is nothing to learn
    rows = read_history(corpus / "models" / "adapted-0.history.jsonl")
    assert rows[-1]["training"]["CrossEntropyWithSoftmax"] < 0.8 * rows[0]["training"]["CrossEntropyWithSoftmax"]


def test_adapt_with_the_tools_key_without_regularisation_and_resumed(corpus, capsys):
    assert run(corpus) == 0
    plain = "Adapt=[originalModelFileName=default;origModelFileName=$Exp$/models/net;SGD=[adaptationRegType=None]]"
    assert run(corpus, "command=Adapt", plain, "Adapt=[refNodeName=default]") == 0
    assert "Finished Epoch[ 8 of 8]" in capsys.readouterr().err
    assert run(corpus, "command=Adapt", plain) == 0
    assert "no further training is necessary" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Adapt=[originalModelFileName=default]"], r"originalModelFileName is set to default"),
        (["Adapt=[originalModelFileName=nothing]"], r"nothing: No such file"),
        (["Adapt=[modelPath=$Exp$/models/../models/net]"], r"net, the original model; expected a path for the adapted"),
        (
            ["Adapt=[origModelFileName=net]"],
            r"origModelFileName as well as originalModelFileName; expected one",
        ),
        (["Adapt=[refNodeName=default]"], r"refNodeName is missing; expected a node of .*net, for instance Posterior"),
        (["Adapt=[refNodeName=PosteriorProp]"], r"node 'PosteriorProp': not in the network; did you mean Posterior"),
        (["Adapt=[refNodeName=W0]"], r"node 'W0' .*: 10x2; expected a column per frame"),
        (["Adapt=[refNodeName=features]"], r"refNodeName features: 2 rows; expected 3, as the labels labels that it"),
        (["Adapt=[SGD=[adaptationRegWeight=1.5]]"], r"adaptationRegWeight is 1\.5; expected 0 to 1"),
    ],
)
def test_faults_of_adapt(corpus, capsys, arguments, message):
    assert run(corpus, "Train=[SGD=[maxEpochs=1]]") == 0
    capsys.readouterr()
    assert run(corpus, "command=Adapt", "Adapt=[SGD=[adaptationRegWeight=0.5]]", *arguments) == 2
    assert re.search(message, error_line(capsys))


def test_a_network_that_has_learned_nothing_is_not_adapted(corpus, capsys):
    assert run(corpus, "Train=[SGD=[adaptationRegType=KL;adaptationRegWeight=0.5]]") == 2
    assert "KL adaptation of an untrained network; expected action=adapt" in error_line(capsys)


def test_cv_names_the_best_of_a_trainings_models(corpus, capsys):
    assert run(corpus) == 0
    capsys.readouterr()
    assert run(corpus, "command=Cv", "Cv=[crossValidationInterval=1:1:6]") == 0
    lines = capsys.readouterr().err.splitlines()
    models = corpus / "models"
    # net.5 is there as net alone: it stands for the first that is missing, and for no other.
    shown = [line for line in lines if line.startswith("Model ")]
    assert shown == [
        *(f"Model {models}/net.{epoch} --> " for epoch in range(1, 5)),
        f"Model {models}/net --> ",
    ] or shown == [
        f"Model {models}/net.5 does not exist.",
        f"Model {models}/net.6 does not exist.",
        *(f"Model {models}/net.{epoch} --> " for epoch in range(1, 5)),
        f"Model {models}/net --> ",
    ]
    results = [line for line in lines if line.startswith("Final Results: ")]
    assert len(results) == 5
    errors = [float(re.search(r"EvalErrorPrediction = ([\d.e-]+)", line)[1]) for line in results]
    entropies = [float(re.search(r"CrossEntropyWithSoftmax = ([\d.e-]+)", line)[1]) for line in results]
    names = [f"{models}/net.{epoch}" for epoch in range(1, 5)] + [f"{models}/net"]
    best = lines.index("Best models:")
    assert lines[best + 1] == "------------"
    for index, figures in enumerate((errors, entropies)):
        match = re.fullmatch(
            r"Based on Err\[(\d)\]: Best model = (\S+) with min err (\S+) \(\w+\)", lines[best + 2 + index]
        )
        assert int(match[1]) == index
        assert match[2] == names[figures.index(min(figures))]
        assert float(match[3]) == pytest.approx(min(figures), rel=1e-6)


def test_cv_of_some_epochs_and_nodes(corpus, capsys):
    assert run(corpus) == 0
    capsys.readouterr()
    assert run(corpus, "command=Cv", "Cv=[crossValidationInterval=0:2:4;evalNodeNames=CrossEntropyWithSoftmax]") == 0
    shown = capsys.readouterr().err
    assert re.findall(r"^Model \S+/net\.(\d) --> $", shown, re.M) == ["0", "2", "4"]
    assert "ErrorPrediction" not in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Cv=[crossValidationInterval=1:5]"], r"crossValidationInterval is 1:5; expected start:increment:end"),
        (["Cv=[crossValidationInterval=1:0:5]"], r"crossValidationInterval is 1:0:5; expected start:increment:end"),
        (["Cv=[crossValidationInterval=default]"], r"crossValidationInterval is set to default"),
        (["Cv=[modelPath=$Exp$/none]"], r"none: none of its models exists; expected .*none\.1"),
        (["Cv=[sleepTimeBetweenRuns=-1]"], r"sleepTimeBetweenRuns is -1; expected at least 0"),
        (["Cv=[numMBsToShowResult=0]"], r"numMBsToShowResult is 0; expected at least 1"),
        (["Cv=[minibatchSize=0]"], r"minibatchSize is 0; expected at least 1"),
    ],
)
def test_faults_of_cv(corpus, capsys, arguments, message):
    assert run(corpus, "command=Cv", *arguments) == 2
    assert re.search(message, error_line(capsys))


@pytest.mark.parametrize("source", ["SimpleNetworkBuilder", "model"])
def test_gradient_check_shows_every_parameter(corpus, capsys, source):
    arguments = ["Train=[action=gradientCheck]"]
    if source == "model":
        assert run(corpus, "Train=[SGD=[maxEpochs=1]]") == 0
        arguments = ["command=Cv", "Cv=[action=gradientCheck]"]
    capsys.readouterr()
    assert run(corpus, *arguments) == 0
    shown = capsys.readouterr().err
    assert "Gradient check of CrossEntropyWithSoftmax over 64 frames, 6 digits:" in shown
    for name, size, elements in (("W0", "10x2", 10), ("B0", "10x1", 10), ("W1", "3x10", 10), ("B1", "3x1", 3)):
        assert re.search(rf"^{name} +{size} +{elements} +[\d.]+e-\d\d  ", shown, re.M)
    assert "parameters: 4 done, 0 skipped, 0 failed" in shown
    assert "differs" not in shown


def test_gradient_check_finds_a_gradient_that_is_wrong(corpus, capsys, monkeypatch):
    from acoustic.kernels.arrays.elementwise import ArrayKernels

    def wrong(self, grad, value, out):
        self.xp.multiply(grad, 1.001 - value * value, out=out)

    monkeypatch.setattr(ArrayKernels, "tanh_gradient", wrong)
    assert run(corpus, "Train=[action=gradientCheck]") == 1
    shown = capsys.readouterr().err
    assert re.search(r"^W0 .* differs$", shown, re.M)
    assert "parameters: 2 done, 0 skipped, 2 failed" in shown
    sgd = "Train=[SGD=[gradientcheck=true]]"
    assert run(corpus, sgd, "precision=double") == 2
    assert re.search(
        r"gradient check: parameter '[WB]0', element \d+,\d: computed .* expected 6 equal", error_line(capsys)
    )


def test_gradient_check_in_training(corpus, capsys):
    sgd = "Train=[SGD=[gradientcheck=true;maxEpochs=2]]"
    assert run(corpus, sgd, "precision=double") == 0
    assert capsys.readouterr().err.count("Gradient check of 4 parameters passed") == 2
    assert run(corpus, sgd, "makeMode=false") == 2
    assert "gradientcheck=true with precision=float; expected precision=double" in error_line(capsys)


@pytest.mark.parametrize(
    "sgd",
    [
        "gradUpdateType=AdaGrad",
        "gradUpdateType=RmsProp;rms_gamma=0.95",
        "gradUpdateType=AdamW;learningRatesPerMB=0.05",
        "gaussianNoiseInjectStd=0.001",
        "autoAdjust=[autoAdjustLR=AdjustAfterEpoch;reduceLearnRateIfImproveLessThan=0.1]",
        "learningRatesPerMB=default;autoAdjust=[autoAdjustLR=SearchBeforeEpoch;numMiniBatch4LRSearch=5]",
        "autoAdjust=[autoAdjustMinibatch=true;numMiniBatch4LRSearch=5;minibatchSizeTuningMax=64]",
    ],
)
def test_learners_of_a_configuration_learn(corpus, capsys, sgd):
    assert run(corpus, f"Train=[SGD=[{sgd}]]") == 0
    rows = read_history(corpus / "models" / "net.history.jsonl")
    assert rows[-1]["training"]["EvalErrorPrediction"] < 0.25


def test_several_actions_in_one_block_and_the_file_that_says_done(corpus, capsys):
    done = corpus / "out" / "done"
    assert run(corpus, "Train=[action=train:test]", f"doneFile={done}") == 0
    shown = capsys.readouterr().err
    assert shown.index("Finished Epoch[ 5 of 5]") < shown.index("Final Results: ")
    assert done.exists()
    done.unlink()
    assert run(corpus, "Train=[action=train:tset]", f"doneFile={done}") == 2
    assert "action tset is unknown; expected" in error_line(capsys)
    assert not done.exists()


def test_options_that_the_chosen_rule_does_not_read_are_said(corpus, capsys):
    assert (
        run(corpus, "Train=[SGD=[maxEpochs=1;gradUpdateType=AdaGrad;rms_gamma=0.9;normWithAveMultiplier=false]]") == 0
    )
    shown = capsys.readouterr().err
    assert shown.count("has no effect with gradUpdateType") == 1
    assert "rms_gamma has no effect with gradUpdateType=AdaGrad" in shown
    assert "warning: AdaGrad applies no momentum; momentum options have no effect" in shown


def test_old_names_are_taken_and_settings_without_effect_are_noted(corpus, capsys):
    builder = "SimpleNetworkBuilder=[layerTypes=default; layerType=Tanh]"
    sgd = "SGD=[maxEpochs=1; learnerType=SGD; parallelTrain=[parallelizationMethod=DataParallelSGD]]"
    assert run(corpus, "type=double", "precision=default", f"Train=[{builder}; {sgd}]") == 0
    network = load_model(corpus / "models" / "net")
    assert network.backend.precision == "double"
    assert [node.type_name for node in network.nodes.values() if node.name == "H1"] == ["Tanh"]
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    assert [note.partition(" type ")[2] or note.partition("SGD.")[2] for note in notes] == [
        "is the old name of precision",
        "learnerType has no effect: SGD is the only one",
        "parallelTrain has no effect without numJobs: one process trains",
    ]
