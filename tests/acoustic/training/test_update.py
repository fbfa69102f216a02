"""Update rules against steps worked out by hand, on a network of one parameter."""

import math

import numpy as np
import pytest

from acoustic.network import Network
from acoustic.training.options import TrainingOptions
from acoustic.training.update import Updater
from readers.errors import ModelError


def one_parameter(precision: str = "double", **options) -> Network:
    network = Network(precision)
    network.add("LearnableParameter", "w", rows=2, cols=2, init="fixedValue", value=1.0, **options)
    return network


def run(options: dict, gradients: list, rate: float, momentum: float, frames: int = 1, precision="double", **settings):
    """The parameter after one update per gradient, each [[a, b], [c, d]]."""
    network = one_parameter(precision, **settings)
    updater = Updater(network, TrainingOptions(1, learning_rates_per_sample=1.0, **options))
    for gradient in gradients:
        updater.begin(rate, momentum, frames)
        updater(network["w"], network.backend.asarray(np.array(gradient, dtype=float)))
    return network["w"].value


G = [[1.0, -2.0], [4.0, 0.0]]


@pytest.mark.parametrize("precision", ["float", "double"])
def test_without_momentum_the_step_is_rate_times_gradient(precision):
    after = run({}, [G], rate=0.1, momentum=0.0, precision=precision)
    np.testing.assert_allclose(after, [[0.9, 1.2], [0.6, 1.0]], rtol=1e-6)
    assert after.flags.f_contiguous


@pytest.mark.parametrize("precision", ["float", "double"])
def test_momentum_has_unit_gain(precision):
    # v1 = 0.25 * 0.4 * 1 = 0.1; v2 = 0.75 * 0.1 + 0.1 = 0.175; w = 1 - 0.1 - 0.175
    after = run({}, [G, G], rate=0.4, momentum=0.75, precision=precision)
    np.testing.assert_allclose(after[0, 0], 1 - 0.275, rtol=1e-6)
    np.testing.assert_allclose(after[1, 0], 1 - 4 * 0.275, atol=1e-6)


def test_nesterov_looks_ahead():
    # v1 = 0.1, step 0.75 * 0.1 + 0.1 = 0.175; v2 = 0.175, step 0.75 * 0.175 + 0.1 = 0.23125
    after = run({"nesterov": True}, [G, G], rate=0.4, momentum=0.75)
    assert after[0, 0] == pytest.approx(1 - 0.175 - 0.23125)


def test_clipping_by_truncation_limits_each_element_to_the_threshold_times_frames():
    after = run({"clipping_threshold": 0.5}, [G], rate=0.1, momentum=0.0, frames=3)  # limit 1.5
    np.testing.assert_allclose(after, [[0.9, 1.15], [0.85, 1.0]])


def test_clipping_by_norm_keeps_the_direction():
    gradient = [[3.0, 0.0], [0.0, 4.0]]  # norm 5, limit 2.5
    options = {"clipping_threshold": 2.5, "clip_by_truncation": False}
    np.testing.assert_allclose(run(options, [gradient], 0.1, 0.0), [[0.85, 1.0], [1.0, 0.8]])
    np.testing.assert_allclose(run(options, [gradient], 0.1, 0.0, frames=2), [[0.7, 1.0], [1.0, 0.6]])  # within 5


def test_l2_adds_weight_times_frames_after_clipping():
    # clipped to 1, then 0.05 * 4 * 1 = 0.2 comes on top: 1.2 (and 0.2 where the gradient is 0)
    after = run({"l2_weight": 0.05, "clipping_threshold": 0.25}, [G], rate=0.1, momentum=0.0, frames=4)
    np.testing.assert_allclose(after, [[0.88, 1.08], [0.88, 0.98]])


def test_l1_shrinks_after_the_step_and_stops_at_zero():
    gradient = [[0.0, 9.9], [10.1, 25.0]]
    # after the step 1, 0.01, -0.01, -1.5; threshold 0.1 * 0.5 * 1 = 0.05
    after = run({"l1_weight": 0.5}, [gradient], rate=0.1, momentum=0.0)
    np.testing.assert_allclose(after, [[0.95, 0.0], [0.0, -1.45]], atol=1e-12)


def test_learning_rate_multiplier_scales_the_rate():
    after = run({}, [G], rate=0.1, momentum=0.0, learningRateMultiplier=0.5)
    np.testing.assert_allclose(after, [[0.95, 1.1], [0.8, 1.0]])


def test_restore_refuses_smoothed_gradients_of_another_model():
    network = one_parameter()
    updater = Updater(network, TrainingOptions(1, learning_rates_per_sample=1.0))
    with pytest.raises(ModelError, match=r"m\.ckp: smoothed gradients of u, w do not fit the model"):
        updater.restore({"u": np.zeros((2, 2))}, "m.ckp")
    updater.restore({"w": np.full((2, 2), 3.0)}, "m.ckp")
    assert (updater.velocities["w"] == 3).all()


def test_frozen_parameters_have_no_smoothed_gradient():
    network = one_parameter(needGradient=False)
    assert not Updater(network, TrainingOptions(1, learning_rates_per_sample=1.0)).velocities


def test_options_without_clipping_are_infinite():
    assert TrainingOptions(1, learning_rates_per_sample=1.0).clipping_threshold == math.inf
