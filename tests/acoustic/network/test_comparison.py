"""What is said of a description that changed after training had begun."""

import numpy as np
import pytest

from acoustic.network.comparison import differences, fingerprint, summary
from acoustic.network.model_file import load_model, save_model
from tests.acoustic.descriptions.builders.test_simple import build_simple_network, options_of

BASE = """layerSizes=8:6*2:3
trainingCriterion=CrossEntropyWithSoftmax
evalCriterion=ErrorPrediction
layerTypes=Sigmoid
applyMeanVarNorm=true
needPrior=true"""


def network(old="", new="", seed=0):
    assert old in BASE
    return build_simple_network(options_of(BASE.replace(old, new)), seed=seed)


def test_a_saved_network_differs_in_nothing(tmp_path):
    trained = network()
    for node in trained.precomputed():
        trained.set_value(node, np.ones((trained.shapes[node.name].rows, 1)))
    save_model(trained, tmp_path / "net")
    loaded = load_model(tmp_path / "net")
    for described in (network(), network(seed=3)):
        assert differences(described, loaded) == []
        assert fingerprint(described) == fingerprint(loaded)


def test_initial_values_do_not_count():
    changed = network("layerTypes=Sigmoid", "layerTypes=Sigmoid\ninitValueScale=3\nuniformInit=false")
    assert differences(changed, network()) == []
    assert fingerprint(changed) == fingerprint(network())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("8:6*2:3", "8:7:6:3", "W0 is 7x8, was 6x8; B0 is 7x1, was 6x1; W1 is 6x7, was 6x6"),
        ("layerTypes=Sigmoid", "layerTypes=Tanh", "H1 is Tanh, was Sigmoid; H2 is Tanh, was Sigmoid"),
        ("needPrior=true", "needPrior=false", "Prior (Mean) is gone; LogOfPrior (Log) is gone; ScaledLogLikelihood"),
        ("applyMeanVarNorm=true", "", "W0*features has operands W0, features, had W0, MVNormalizedFeatures"),
        ("evalCriterion=ErrorPrediction", "", "EvalErrorPrediction (ErrorPrediction) is gone"),
    ],
)
def test_differences_are_named(old, new, expected):
    described, trained = network(old, new), network()
    found = differences(described, trained)
    assert expected in summary(found)
    assert fingerprint(described) != fingerprint(trained)
    back = differences(trained, described)
    assert len(back) == len(found)


def test_special_nodes_are_named():
    described, trained = network(), network()
    described.outputs[:] = ["H1", "H2"]
    assert differences(described, trained) == ["outputs are H1, H2, were ScaledLogLikelihood"]


def test_options_and_new_nodes_are_named():
    described, trained = network(), network()
    described["W1"].settings["needGradient"] = False
    described.add("Tanh", "more", "H1")
    assert differences(described, trained) == ["W1: needGradient is false, was true", "more (Tanh) is new"]
    assert summary(["a", "b", "c", "d", "e"]) == "a; b; c and 2 more"
