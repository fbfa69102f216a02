"""Outputs of networks for arrays, against the same computed by hand."""

import numpy as np
import pytest

from acoustic.descriptions import open_network
from acoustic.descriptions.builders import LstmOptions, SimpleNetworkOptions
from acoustic.network.model_file import save_model
from acoustic.scoring import forward, log_posteriors
from acoustic.training import TrainingOptions, train
from readers.errors import ConfigError, ModelError, ShapeError
from readers.sources.arrays import ArrayFeatures, ArrayReader

RANDOM = np.random.default_rng(0)
FRAMES = {"a": RANDOM.normal(size=(7, 2)).astype(np.float32), "b": RANDOM.normal(size=(1, 2)).astype(np.float32)}
DNN = SimpleNetworkOptions(layer_sizes=(2, 4, 3), layer_types=("Tanh",))


def by_hand(network, frames: np.ndarray) -> np.ndarray:
    """What the softmax gets, (T, 3)."""
    w0, b0, w1, b1 = (np.asarray(network[name].value, np.float64) for name in ("W0", "B0", "W1", "B1"))
    return (w1 @ np.tanh(w0 @ frames.T + b0) + b1).T


def log_softmax(scores: np.ndarray) -> np.ndarray:
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def test_the_values_of_a_node(tmp_path):
    network = open_network(DNN, seed=1)
    save_model(network, tmp_path / "model")
    outputs = forward(tmp_path / "model", {"features": FRAMES})
    posteriors = forward(network, ArrayReader({"features": FRAMES}, write=True), "posteriorprob")
    logarithms = log_posteriors(network, {"features": FRAMES})
    assert list(outputs) == ["a", "b"]
    for key, frames in FRAMES.items():
        expected = by_hand(network, frames)
        assert (outputs[key].shape, outputs[key].dtype) == ((len(frames), 3), np.float32)
        np.testing.assert_allclose(outputs[key], expected, atol=1e-6)
        np.testing.assert_allclose(logarithms[key], log_softmax(expected), atol=1e-6)
        np.testing.assert_allclose(posteriors[key], np.exp(log_softmax(expected)), atol=1e-6)


def test_log_posteriors_are_exact_where_posteriors_are_below_what_float32_has():
    network = open_network(DNN)
    network.set_value("B1", np.asfortranarray([[0], [500], [-500]], np.float32))
    (row,) = log_posteriors(network, {"features": FRAMES})["b"]
    np.testing.assert_allclose(row, [-500, 0, -1000], rtol=1e-3, atol=1e-3)
    assert np.log(forward(network, {"features": FRAMES}, "PosteriorProb")["b"][0, 2]) > -100


def test_the_context_is_that_of_the_training():
    classes = {key: np.zeros(len(frames), int) for key, frames in FRAMES.items()}
    data = {"features": {"a": FRAMES["a"]}, "labels": {"a": classes["a"]}}
    reader = ArrayReader(data, streams={"features": ArrayFeatures(context=(1, 2))})
    options = TrainingOptions(max_epochs=1, learning_rates_per_sample=0.01)
    network = train(SimpleNetworkOptions(layer_sizes=(8, 4, 1), layer_types="Tanh"), reader, options).network
    frames = FRAMES["a"]
    rows = np.clip(np.arange(7)[:, None] + [-1, 0, 1, 2], 0, 6)
    expected = by_hand(network, frames[rows].reshape(7, 8))
    np.testing.assert_allclose(forward(network, {"features": [frames]})["0"], expected, atol=1e-6)


def test_recurrent_networks_see_one_utterance_at_a_time():
    network = open_network(LstmOptions(layer_sizes=(2, 4, 3)), "double", seed=2)
    together = forward(network, {"features": FRAMES})
    assert together["a"].dtype == np.float64
    for key, frames in FRAMES.items():
        np.testing.assert_array_equal(forward(network, {"features": {key: frames}})[key], together[key])


def test_faults():
    network = open_network(DNN)
    with pytest.raises(ModelError, match="Posterior"):
        forward(network, {"features": FRAMES}, "Posterior")
    with pytest.raises(ModelError, match="expected a node with a column per frame"):
        forward(network, {"features": FRAMES}, "CrossEntropyWithSoftmax")
    with pytest.raises(ShapeError, match=r"reader: gives x \(2\); expected features \(2\), an input of the network"):
        forward(network, {"x": FRAMES})
    with pytest.raises(ShapeError, match="reader: features has dimension 1; expected 2"):
        forward(network, {"features": [FRAMES["a"][:, :1]]})
    with pytest.raises(ConfigError, match="features of utterance 0: frame 0 has a value that is infinite or NaN"):
        forward(network, {"features": [FRAMES["a"] * np.nan]})
    squares = SimpleNetworkOptions(layer_sizes=(2, 3), training_criterion="SquareError")
    with pytest.raises(ModelError, match="no criterion CrossEntropyWithSoftmax; expected one, for log-posteriors"):
        log_posteriors(squares, {"features": FRAMES})
