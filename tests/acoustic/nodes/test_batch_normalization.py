"""Batch normalisation: by the definition, its gradients, and how its running statistics move."""

import math
from dataclasses import replace

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from acoustic.training.options import TrainingOptions
from acoustic.training.sgd import train
from readers.errors import ModelError, ShapeError
from readers.minibatches.sequence_layout import SequenceLayout

TOLERANCE = 1e-6
EPSILON = 1e-3


def normalised(rows=3, spatial=False, precision="double", known=True, **options):
    """features (an image of 2x1 pixels of `rows` channels, if spatial) through Plus(x) and the node "v"."""
    rng = np.random.default_rng(0)
    network = Network(precision, threads=1)
    size = rows * 2 if spatial else rows
    network.add("ImageInput", "features", width=2 if spatial else 1, height=1, channels=rows)
    network.add("Parameter", "shift", rows=size)
    network.add("Plus", "x", "features", "shift")
    network.add("Tanh", "y", "x")
    for name, fixed in (("scale", False), ("bias", False), ("mean", True), ("invstd", True)):
        network.add("Parameter", name, rows=rows, needGradient=not fixed)
        network.set_value(name, rng.uniform(0.5, 2, (rows, 1)) if known or not fixed else np.zeros((rows, 1)))
    operands = ("y", "scale", "bias", "mean", "invstd")
    network.add("BatchNormalization", "v", *operands, spatial=spatial, epsilon=EPSILON, **options)
    return network


def data(network, frames, seed=1):
    rows = network.shapes["features"].rows
    return {"features": np.asfortranarray(np.random.default_rng((seed, frames)).standard_normal((rows, frames)))}


def statistics(network, matrices):
    """(mean, variance) of the rows, or channels, of y, (C, 1) each."""
    engine = Engine(network, ["y"])
    engine.forward(matrices)
    pixels = engine.value("y").reshape((len(network["scale"].value), -1), order="F")
    return pixels.mean(axis=1, keepdims=True), pixels.var(axis=1, keepdims=True)


def result(network, matrices, training):
    engine = Engine(network, ["y", "v", add_criterion(network)])
    engine.forward(matrices, training=training)
    channels = len(network["scale"].value)
    return [engine.value(name).reshape((channels, -1), order="F") for name in "yv"]


def add_criterion(network):
    """J = the sum of sigmoid(2 v): not linear, so that the gradient of every element is another."""
    if "J" not in network.nodes:
        network.add("Constant", "two", value=2)
        network.add("Scale", "twice", "two", "v")
        network.add("Sigmoid", "s", "twice")
        network.add("SumElements", "J", "s")
    return "J"


@pytest.mark.parametrize("spatial", [False, True])
@pytest.mark.parametrize("precision", ["double", "float"])
def test_training_normalises_by_the_minibatch_and_evaluation_by_what_is_stored(spatial, precision):
    network = normalised(spatial=spatial, precision=precision)
    matrices = data(network, 7)
    scale, bias, stored_mean, stored_invstd = (network[n].value.copy() for n in ("scale", "bias", "mean", "invstd"))
    mean, variance = statistics(network, matrices)
    y, v = result(network, matrices, training=True)
    tolerance = 1e-12 if precision == "double" else 1e-5
    expected = scale * (y - mean) / np.sqrt(variance + EPSILON) + bias
    np.testing.assert_allclose(v, expected, rtol=tolerance, atol=tolerance)
    y, v = result(network, matrices, training=False)
    np.testing.assert_allclose(v, scale * (y - stored_mean) * stored_invstd + bias, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("spatial", [False, True])
@pytest.mark.parametrize("frames", [2, 7])
@pytest.mark.parametrize("blend", [0.0, 5.0])
@pytest.mark.parametrize("known", [False, True])
def test_gradients(spatial, frames, blend, known):
    network = normalised(spatial=spatial, blendTimeConstant=blend, known=known)
    comparisons = check_gradients(network, add_criterion(network), data(network, frames))
    assert {comparison.parameter for comparison in comparisons} == {"shift", "scale", "bias"}
    for comparison in comparisons:
        assert comparison.error < TOLERANCE, comparison


def test_gradients_of_a_part_of_the_parameters():
    for frozen in ("shift", "scale", "bias"):
        network = normalised()
        network[frozen].settings["needGradient"] = False
        for comparison in check_gradients(network, add_criterion(network), data(network, 5)):
            assert comparison.error < TOLERANCE, comparison


def test_blended_statistics():
    network = normalised(blendTimeConstant=21)
    matrices = data(network, 7)  # the minibatch has weight 1 - 21 / 28
    mean, variance = statistics(network, matrices)
    y, v = result(network, matrices, training=True)
    known = network["invstd"].value ** -2.0 - EPSILON
    centre = 0.25 * mean + 0.75 * network["mean"].value
    inverse = 1 / np.sqrt(0.25 * variance + 0.75 * known + EPSILON)
    expected = network["scale"].value * (y - centre) * inverse + network["bias"].value
    np.testing.assert_allclose(v, expected, rtol=1e-12)


def train_once(network, matrices):
    engine = Engine(network, [add_criterion(network)])
    engine.forward(matrices, training=True)
    engine.backward(on_gradient=lambda node, gradient: None)


@pytest.mark.parametrize("spatial", [False, True])
def test_running_statistics_by_hand(spatial):
    network = normalised(spatial=spatial, known=False, normalizationTimeConstant=20)
    first, second = data(network, 7), data(network, 9, seed=2)
    means, variances = zip(statistics(network, first), statistics(network, second))
    train_once(network, first)  # nothing was known: all of it
    np.testing.assert_allclose(network["mean"].value, means[0], rtol=1e-12)
    np.testing.assert_allclose(network["invstd"].value, 1 / np.sqrt(variances[0] + EPSILON), rtol=1e-12)
    train_once(network, second)
    keep = math.exp(-9 / 20)
    variance = keep * variances[0] + (1 - keep) * variances[1]
    np.testing.assert_allclose(network["mean"].value, keep * means[0] + (1 - keep) * means[1], rtol=1e-10)
    np.testing.assert_allclose(network["invstd"].value, 1 / np.sqrt(variance + EPSILON), rtol=1e-10)


def test_without_a_time_constant_the_last_minibatch_counts():
    network = normalised()
    matrices = data(network, 7)
    mean, variance = statistics(network, matrices)
    train_once(network, matrices)
    np.testing.assert_allclose(network["mean"].value, mean, rtol=1e-12)
    np.testing.assert_allclose(network["invstd"].value, 1 / np.sqrt(variance + EPSILON), rtol=1e-12)


def test_an_infinite_time_constant_leaves_them_alone():
    network = normalised(normalizationTimeConstant=math.inf)
    before = network["mean"].value.copy(), network["invstd"].value.copy()
    train_once(network, data(network, 7))
    np.testing.assert_allclose(network["mean"].value, before[0], rtol=1e-12)
    np.testing.assert_allclose(network["invstd"].value, before[1], rtol=1e-12)


def test_neither_evaluation_nor_a_gradient_check_moves_them():
    network = normalised()
    before = network["mean"].value.copy(), network["invstd"].value.copy()
    matrices = data(network, 7)
    engine = Engine(network, [add_criterion(network)])
    engine.forward(matrices)
    check_gradients(network, "J", matrices, engine=engine)
    np.testing.assert_array_equal(network["mean"].value, before[0])
    np.testing.assert_array_equal(network["invstd"].value, before[1])


def classifier():
    network = Network("float", seed=3)
    network.add("Input", "features", rows=2, tag="feature")
    network.add("Input", "labels", rows=2, tag="label")
    network.add("Parameter", "W1", rows=8, cols=2, initValueScale=10)
    network.add("Times", "t1", "W1", "features")
    for name, value, learns in (("sc", 1, True), ("b", 0, True), ("m", 0, False), ("isd", 0, False)):
        network.add("Parameter", name, rows=8, init="fixedValue", value=value, needGradient=learns)
    options = {"normalizationTimeConstant": 300, "blendTimeConstant": 10}
    network.add("BatchNormalization", "bn", "t1", "sc", "b", "m", "isd", **options)
    network.add("RectifiedLinear", "h", "bn")
    network.add("Parameter", "W2", rows=2, cols=8, initValueScale=10)
    network.add("Times", "z", "W2", "h")
    network.add("CrossEntropyWithSoftmax", "ce", "labels", "z")
    network.add("ErrorPrediction", "err", "labels", "z")
    network.criteria.append("ce")
    network.evaluations.append("err")
    return network


OPTIONS = {"learning_rates_per_minibatch": 0.3, "minibatch_size": 50, "max_epochs": 4, "keep_checkpoints": True}


def test_training_learns_and_evaluation_agrees(ring_reader):
    options = TrainingOptions(**{**OPTIONS, "max_epochs": 20})
    history = train(classifier(), ring_reader(), options, ring_reader(seed=1)).history
    assert history[-1]["validation"]["err"] < 0.1
    assert abs(history[-1]["validation"]["ce"] - history[-1]["training"]["ce"]) < 0.1


def test_a_resumed_training_is_the_same_bit_for_bit(ring_reader, tmp_path):
    whole = train(classifier(), ring_reader(), TrainingOptions(**OPTIONS), model_path=tmp_path / "whole").network
    short = TrainingOptions(**{**OPTIONS, "max_epochs": 2})
    train(classifier(), ring_reader(), short, model_path=tmp_path / "parts")
    for path in list(tmp_path.glob("parts")) + list(tmp_path.glob("parts.ckp")):
        path.rename(path.with_name(path.name.replace("parts", "parts.2")))
    parts = train(classifier(), ring_reader(), TrainingOptions(**OPTIONS), model_path=tmp_path / "parts")
    assert parts.start_epoch == 2
    for node in whole.stored():
        np.testing.assert_array_equal(node.value, parts.network[node.name].value)
    assert (whole["isd"].value > 0).all()


def test_saved_with_the_model(tmp_path):
    network = normalised(spatial=True)
    matrices = data(network, 6)
    train_once(network, matrices)
    save_model(network, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded["v"].settings == network["v"].settings
    for first, second in zip(result(network, matrices, False), result(loaded, matrices, False)):
        np.testing.assert_array_equal(first, second)


def test_what_does_not_fit_is_named():
    network = normalised()
    network.add("Parameter", "short", rows=2, needGradient=False)
    with pytest.raises(
        ShapeError, match=r"'w' \(BatchNormalization\): x \S+ is 3x\*.*mean \S+ is 2x1.*expected scale, bias, m"
    ):
        network.add("BatchNormalization", "w", "y", "scale", "bias", "short", "invstd")
    with pytest.raises(
        ModelError, match=r"node 'bias' \(LearnableParameter\) for statistics; expected a Parameter with"
    ):
        network.add("BatchNormalization", "w", "y", "scale", "bias", "mean", "bias")
    with pytest.raises(ModelError, match=r"epsilon=-1.0; expected a number >= 0"):
        network.add("BatchNormalization", "w", "y", "scale", "bias", "mean", "invstd", epsilon=-1)
    network.add("Input", "column", rows=3)
    with pytest.raises(ShapeError, match=r"x \S+ is 3x.*expected x to be an image, with spatial"):
        network.add("BatchNormalization", "w", "column", "scale", "bias", "mean", "invstd", spatial=True)


@pytest.mark.parametrize("spatial", [False, True])
def test_columns_without_a_frame_are_left_out(spatial):
    """Values, gradients and statistics are those of the frames without gaps; the context of sequences counts."""
    layout = SequenceLayout.of_lengths([5, 2, 4])
    uncounted = np.zeros_like(layout.gaps)
    uncounted[0] = True
    real, found = ~layout.gaps.ravel(), []
    for marks in (layout, None):
        network = normalised(spatial=spatial, normalizationTimeConstant=20, blendTimeConstant=9)
        engine = Engine(network, [add_criterion(network), "v"])
        matrices = data(network, layout.num_columns)
        if marks is None:
            matrices["features"] = np.asfortranarray(matrices["features"][:, real])
        engine.forward(matrices, training=True, layout=marks)
        value = engine.value("v")
        engine.backward()
        gradients = [engine.gradient(name).copy() for name in ("shift", "scale", "bias")]
        stored = [network[name].value for name in ("mean", "invstd")]
        found.append([value if marks is None else value[:, real], *gradients, *stored])
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    values = []
    for marks in (layout, replace(layout, uncounted=uncounted)):
        network = normalised(spatial=spatial)
        engine = Engine(network, [add_criterion(network), "v"])
        engine.forward(data(network, layout.num_columns), training=True, layout=marks)
        values.append(engine.value("v").copy())
    np.testing.assert_array_equal(*values)
