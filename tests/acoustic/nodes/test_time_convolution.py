"""Time convolution against its definition, its gradients, and stacks of it."""

import numpy as np
import pytest

from acoustic.engine.gradient_check import check_gradients
from acoustic.kernels.image_geometry import Image
from acoustic.network.network import Network
from tests.acoustic.nodes.image_formulas import add_criterion, network_over, values_of

TOLERANCE = 1e-6

OFFSETS = [("0:1:2", 1, (0, 1, 2)), ("-2:0:2", 1, (-2, 0, 2)), ("-1:3", 2, (-1, 3)), ("0", 3, (0,)), ("2:0", 1, (2, 0))]


@pytest.mark.parametrize(("text", "step", "offsets"), OFFSETS)
@pytest.mark.parametrize("precision", ["double", "float"])
def test_time_convolution_applies_one_matrix_to_each_time(text, step, offsets, precision):
    rng = np.random.default_rng(7)
    dim, frames, m = 3, 7, 2
    network, matrices = network_over(Image(frames, dim, 1), 4, rng, precision)
    network.add("Parameter", "w", rows=m, cols=dim * len(offsets), initValueScale=20)
    network.add("TimeConvolution", "v", "w", "y", offsets=text, step=step)
    y, v = values_of(network, matrices, ["y", "v"])
    expected = []
    for column in y.T:
        window = column.reshape(frames, dim)
        times = [t for t in range(-9, 20) if all(0 <= t + o < frames for o in offsets)][::step]
        expected.append([network["w"].value @ np.concatenate([window[t + o] for o in offsets]) for t in times])
    expected = np.array(expected).reshape(4, -1).T
    np.testing.assert_allclose(v, expected, rtol=1e-5, atol=1e-12 if precision == "double" else 1e-5)


@pytest.mark.parametrize(("text", "step", "offsets"), OFFSETS)
def test_gradients_of_time_convolution(text, step, offsets):
    rng = np.random.default_rng(8)
    network, matrices = network_over(Image(7, 3, 1), 4, rng)
    network.add("Parameter", "w", rows=2, cols=3 * len(offsets), initValueScale=20)
    network.add("TDNN", "v", "w", "y", offsets=text, step=step)
    for comparison in check_gradients(network, add_criterion(network, "v", rng, matrices), matrices):
        assert comparison.error < TOLERANCE, comparison


def test_stacked_time_convolutions_see_the_frames_between_them():
    """Offsets -1:0:1, then -1:1: a network that sees 5 frames."""
    network = Network("double", threads=1)
    network.add("Input", "x", rows=5)
    network.add("Constant", "w1", value=1, rows=1, cols=3)
    network.add("Constant", "w2", value=1, rows=1, cols=2)
    network.add("TimeConvolution", "h", "w1", "x", offsets="-1:0:1")
    network.add("TimeConvolution", "v", "w2", "h", offsets="-1:1")
    assert [network.shapes[name].rows for name in "hv"] == [3, 1]
    (value,) = values_of(network, {"x": np.array([[1.0], [10], [100], [1000], [10000]])}, ["v"])
    assert value[0, 0] == 111 + 11100
