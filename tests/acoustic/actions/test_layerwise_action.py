"""Layer-wise back-propagation in a configuration: what is trained and written, and how a run is taken up again."""

import numpy as np
import pytest

from acoustic.actions import CommonSettings, make_action
from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.network.model_file import load_model
from acoustic.training.reporting.log import read_history
from readers.config.config import Config
from readers.errors import ConfigError

CONFIG = """
Train=[
  action=train
  modelPath=net
  SimpleNetworkBuilder=[
    layerSizes=2:6:5:4:2
    layerTypes=Tanh
    initValueScale=10
    applyMeanVarNorm=true
    evalCriterion=ErrorPrediction
  ]
  SGD=[
    minibatchSize=20
    learningRatesPerMB=0.4
    momentumPerMB=0.5
    maxEpochs=3
    layerwiseEpochs=2
    layerwiseEpochSize=100
  ]
  reader=[
    readerType=UCIFastReader
    file=data
    features=[dim=2;start=0]
    labels=[start=2;dim=1;labelDim=2;labelMappingFile=map]
  ]
]"""


@pytest.fixture
def here(ring_reader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reader = ring_reader(200)
    x, y = reader.matrices["features"], reader.matrices["labels"].argmax(axis=0)
    (tmp_path / "data").write_text("".join(f"{a} {b} {c}\n" for a, b, c in zip(*x, y)))
    (tmp_path / "map").write_text("0\n1\n")
    return tmp_path


def run(text=CONFIG, name="train"):
    log = []
    block = Config.from_text(text, "l.cntk").block("Train")
    make_action(name, block, CommonSettings()).run(log.append, lambda *done, **figures: None)
    return log


def test_training_goes_through_the_smaller_networks(here):
    log = run()
    stages = [line for line in log if line.startswith("layer-wise")]
    assert stages == [
        "layer-wise: 1 of 3 hidden layers, layerSizes 2:6:2",
        "layer-wise: 2 of 3 hidden layers, layerSizes 2:6:5:2",
    ]
    models = {name: load_model(name) for name in ("net.layers1", "net.layers2", "net.0", "net")}
    assert [len(read_history(f"{name}.history.jsonl")) for name in ("net.layers1", "net.layers2", "net")] == [2, 2, 3]
    assert read_history("net.layers1.history.jsonl")[-1]["total_samples"] == 200
    for name in ("W0", "B0", "W1", "B1", "MeanOfFeatures"):
        np.testing.assert_array_equal(models["net.0"][name].value, models["net.layers2"][name].value)
    fresh = build_simple_network(
        SimpleNetworkOptions((2, 6, 5, 4, 2), ("Tanh",), init_scale=10.0, normalise_features=True)
    )
    for name in ("W2", "W3"):
        np.testing.assert_array_equal(models["net.0"][name].value, fresh[name].value)
    assert sum("Precomputing -->" in line for line in log) == 2  # once, at its begin and end


def test_a_run_that_was_interrupted_goes_on_where_it_was(here):
    run()
    final = (here / "net").read_bytes()
    for path in here.glob("net*"):
        if not path.name.startswith("net.layers1"):
            path.unlink()
    log = run()
    assert "No further training is necessary." in log  # of the first
    assert (here / "net").read_bytes() == final
    (here / "net").unlink()
    assert not any(line.startswith("layer-wise") for line in run())  # its own epochs are there
    before = (here / "net.layers1").stat().st_mtime_ns
    again = run(CONFIG.replace("action=train", "action=train\n  makeMode=false"))
    assert sum(line.startswith("layer-wise") for line in again) == 2
    assert (here / "net.layers1").stat().st_mtime_ns > before
    assert (here / "net").read_bytes() == final


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("layerwiseEpochs=2", "layerwiseEpochs=-1"),
            r"l.cntk:\d+: Train.SGD.layerwiseEpochs is -1; expected at",
        ),
        (
            ("layerwiseEpochSize=100", "layerwiseEpochSize=10"),
            "layerwiseEpochSize is 10; expected at least minibatchSize 20",
        ),
        (
            ("learningRatesPerMB=0.4", "autoAdjust=[autoAdjustLR=searchBeforeEpoch]"),
            r"l.cntk:\d+: layerwiseEpochs: learningRatesPerMB is missing; expected",
        ),
        (
            ("layerTypes=Tanh", "rnnType=SIMPLERNN"),
            r"layerwiseEpochs with another network; expected SimpleNetworkBuilder with rnnType=SIMPLENET",
        ),
    ],
)
def test_faults_of_the_configuration(here, change, message):
    with pytest.raises(ConfigError, match=message):
        run(CONFIG.replace(*change))


def test_a_network_that_has_learned_is_not_grown(here):
    text = CONFIG.replace("action=train", "originalModelFileName=old")
    with pytest.raises(ConfigError, match="layerwiseEpochs for a trained network; expected action=train"):
        run(text, "adapt")
