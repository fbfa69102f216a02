"""Chains that become one step give what their nodes give one by one, and are found where they may be, not elsewhere."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.kernels.image_geometry import Image
from acoustic.network.network import Network
from acoustic.runtime.engine_options import EngineOptions

CASES = [
    # image, kernel (width, height), steps, zero padding, pooling window, its steps
    (Image(5, 8, 1), (3, 3), (1, 1), False, (1, 2), (1, 2)),
    (Image(5, 8, 2), (3, 3), (1, 1), False, (2, 3), (1, 1)),  # several channels, windows overlap
    (Image(6, 7, 2), (2, 3), (2, 1), False, (3, 1), (1, 2)),
    (Image(5, 6, 3), (3, 3), (2, 1), True, (2, 2), (2, 2)),  # padded
    (Image(3, 5, 1), (4, 4), (1, 2), True, (2, 2), (1, 1)),
    (Image(4, 6, 1), (4, 6), (1, 1), False, (1, 1), (1, 1)),  # one window
]
KINDS = ("Sigmoid", "Tanh", "RectifiedLinear")


def stack(image, kernel, steps, padded, window, pool_steps, kind, precision="double", bias_first=False):
    """J = the sum of squares of MaxPooling(f(Convolution(w, y) + b)) less numbers, y an image that learns."""
    rng = np.random.default_rng(0)
    network = Network(precision)
    network.add("ImageInput", "features", width=image.width, height=image.height, channels=image.channels)
    network.add("Parameter", "x", rows=image.size, initValueScale=20)
    network.add("Plus", "y", "features", "x")
    network.add("Parameter", "w", rows=4, cols=kernel[0] * kernel[1] * image.channels, initValueScale=10)
    network.add("Parameter", "b", rows=4, initValueScale=10)
    names = ("kernelWidth", "kernelHeight", "outputChannels", "horizontalSubsample", "verticalSubsample", "zeroPadding")
    network.add("Convolution", "c", "w", "y", **dict(zip(names, (*kernel, 4, *steps, padded))))
    network.add("Plus", "p", *(("b", "c") if bias_first else ("c", "b")))
    network.add(kind, "f", "p")
    names = ("windowWidth", "windowHeight", "stepW", "stepH")
    network.add("MaxPooling", "m", "f", **dict(zip(names, (*window, *pool_steps))))
    network.add("Input", "numbers", rows=network.shapes["m"].rows)
    network.add("SquareError", "J", "m", "numbers")
    frames = 130
    matrices = {
        name: np.asfortranarray(rng.standard_normal((network.shapes[name].rows, frames)))
        for name in ("features", "numbers")
    }
    return network, matrices


def results(network, matrices, **settings):
    engine = Engine(network, ["J"], **settings)
    values = []
    for _ in range(2):  # the second pass finds memory used
        engine.forward(matrices, training=True)
        values = [engine.value("J").copy()]
        engine.backward()
    kinds = {node.type_name for node in engine.graph.order}
    return values + [engine.gradient(name).copy() for name in ("w", "b", "x")], kinds


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("precision", "tolerance"), [("double", 1e-10), ("float", 2e-3)])
def test_a_convolutional_layer_in_one_step(case, kind, precision, tolerance):
    network, matrices = stack(*case, kind, precision)
    network.backend.__dict__["team"] = type(network.backend.team)(2)
    apart, _ = results(network, matrices, options=EngineOptions(fusion=False))
    for threads in (1, 2):
        fused, kinds = results(network, matrices, threads=threads)
        assert "ConvolutionPooling" in kinds
        for first, second in zip(apart, fused):
            np.testing.assert_allclose(second, first, rtol=tolerance, atol=tolerance * abs(first).max())


@pytest.mark.parametrize("frozen", ["w", "b", "x"])
def test_a_part_of_the_parameters_learns(frozen):
    network, matrices = stack(*CASES[1], "Tanh", bias_first=True)
    network[frozen].settings["needGradient"] = False
    gradients = []
    for fusion in (False, True):
        engine = Engine(network, ["J"], options=EngineOptions(fusion=fusion))
        engine.forward(matrices, training=True)
        engine.backward()
        gradients.append([engine.gradient(name).copy() for name in ("w", "b", "x") if name != frozen])
    for first, second in zip(*gradients):
        np.testing.assert_allclose(first, second, rtol=1e-10)


def test_evaluation_in_one_step():
    network, matrices = stack(*CASES[1], "Sigmoid")
    values = []
    for fusion in (False, True):
        engine = Engine(network, ["m"], options=EngineOptions(fusion=fusion))
        engine.forward(matrices)
        values.append(engine.value("m").copy())
    np.testing.assert_allclose(values[0], values[1], rtol=1e-12)


@pytest.mark.parametrize("wanted", ["c", "p", "f"])
def test_a_value_that_is_wanted_is_not_fused_away(wanted):
    network, matrices = stack(*CASES[0], "Sigmoid")
    engine = Engine(network, ["J", wanted])
    engine.forward(matrices)
    assert "ConvolutionPooling" not in {node.type_name for node in engine.graph.order}
    assert engine.value(wanted).shape[0] == network.shapes[wanted].rows
