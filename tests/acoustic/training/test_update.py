"""Update rules against steps worked out by hand, on a network of one parameter."""

import math

import numpy as np
import pytest

from acoustic.network.network import Network
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import AdaGrad, Momentum, RmsProp
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
    after = run({"rule": Momentum(nesterov=True)}, [G, G], rate=0.4, momentum=0.75)
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


@pytest.mark.parametrize("options", [{}, {"noise_deviation": 1.0}, {"rule": AdaGrad()}, {"l1_weight": 1.0}])
def test_learning_rate_multiplier_0_leaves_a_parameter_as_it_is(options):
    assert (run(options, [G, G], rate=0.1, momentum=0.5, learningRateMultiplier=0.0) == 1).all()


def test_restore_refuses_smoothed_gradients_of_another_model_or_rule():
    updater = Updater(one_parameter(), TrainingOptions(1, learning_rates_per_sample=1.0))
    with pytest.raises(ModelError, match=r"m\.ckp: smoothed gradients velocity:u, velocity:w do not fit the model and"):
        updater.restore({"velocity:u": np.zeros((2, 2))}, {}, "m.ckp")
    with pytest.raises(ModelError, match=r"squares:w, velocity:w do not fit the model and gradUpdateType none"):
        updater.restore({"squares:w": np.zeros((2, 2))}, {}, "m.ckp")
    with pytest.raises(ModelError, match=r"m\.ckp: numbers of the update rule are {'updates': 'many'}"):
        updater.restore({"velocity:w": np.zeros((2, 2))}, {"updates": "many"}, "m.ckp")
    with pytest.raises(ModelError, match=r"m\.ckp: numbers of the update rule are \[7\]; expected numbers"):
        updater.restore({"velocity:w": np.zeros((2, 2))}, [7], "m.ckp")
    updater.restore({"velocity:w": np.full((2, 2), 3.0)}, {"updates": 7}, "m.ckp")
    assert (updater.state["w"]["velocity"] == 3).all()
    assert updater.scalars == {"updates": 7}


def test_frozen_parameters_have_no_state():
    network = one_parameter(needGradient=False)
    assert not Updater(network, TrainingOptions(1, learning_rates_per_sample=1.0)).state


@pytest.mark.parametrize(
    ("options", "by_parts"),
    [
        ({}, True),
        ({"clipping_threshold": 1.0}, True),
        ({"clipping_threshold": 1.0, "clip_by_truncation": False}, False),
        ({"rule": AdaGrad()}, False),  # needs the mean over the whole parameter
        ({"rule": AdaGrad(normalise=False)}, True),
        ({"rule": RmsProp(normalise=False), "noise_deviation": 0.1}, True),
    ],
)
def test_parts_of_a_parameter_give_what_the_whole_gives(options, by_parts):
    shape, rng = (5, 6), np.random.default_rng(3)
    start, gradients = rng.normal(size=shape), rng.normal(size=(2, *shape))

    def updated(parts):
        network = Network()
        network.add("LearnableParameter", "w", rows=5, cols=6)
        network["w"].value[...] = start
        updater = Updater(network, TrainingOptions(1, learning_rates_per_sample=1.0, l1_weight=0.1, **options))
        assert updater.takes_parts == by_parts
        for index, gradient in enumerate(gradients):
            updater.begin(0.1, 0.5, 4, (1, 2, index))
            gradient = network.backend.asarray(gradient)
            if parts:
                for columns in (slice(0, 2), slice(2, 6)):
                    updater.part(network["w"], gradient[:, columns], columns)
            else:
                updater(network["w"], gradient)
        return network["w"].value

    whole = updated(False)
    if by_parts:
        # Vectors and the elements left over may round differently, depending on the processor.
        np.testing.assert_allclose(updated(True), whole, rtol=1e-6)
    assert whole.flags.f_contiguous


def test_noise_follows_from_the_seed_and_has_its_deviation():
    def updated(seed):
        network = Network("double")
        network.add("LearnableParameter", "w", rows=300, cols=200, init="fixedValue", value=1.0)
        updater = Updater(network, TrainingOptions(1, learning_rates_per_sample=1.0, noise_deviation=0.25))
        updater.begin(0.1, 0.0, 4, seed)
        updater(network["w"], network.backend.asarray(np.zeros((300, 200))))
        return network["w"].value - 1

    noise = updated((0, 1, 2))
    np.testing.assert_array_equal(updated((0, 1, 2)), noise)
    assert abs(np.corrcoef(updated((0, 1, 3)).ravel(), noise.ravel())[0, 1]) < 0.02
    assert noise.std() == pytest.approx(0.25, rel=0.02)
    assert abs(noise.mean()) < 0.005
    assert np.mean(np.abs(noise) < 0.25) == pytest.approx(0.6827, abs=0.01)  # of a normal distribution
    assert abs(np.corrcoef(noise[:-1].ravel(), noise[1:].ravel())[0, 1]) < 0.02


def test_noise_comes_before_the_shrinking():
    """A weight that noise moves by less than the threshold ends at 0."""
    options = {"noise_deviation": 0.001, "l1_weight": 100.0}
    assert (run(options, [[[0.0, 0.0], [0.0, 0.0]]], rate=0.1, momentum=0.0) == 0).all()


def test_options_without_clipping_are_infinite():
    assert TrainingOptions(1, learning_rates_per_sample=1.0).clipping_threshold == math.inf
