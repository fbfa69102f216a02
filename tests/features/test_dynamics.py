"""Deltas, energy and mean by hand arithmetic."""

import numpy as np
import pytest

from features.dynamics import deltas, normalise_energy, subtract_mean
from readers.errors import ShapeError


def rows(*values):
    return np.asfortranarray(values, np.float32)


def test_deltas_of_a_ramp_are_its_slope_but_for_the_edges():
    # At t = 0: (1 (2 - 0) + 2 (4 - 0)) / 10 = 1; at t = 1: (1 (4 - 0) + 2 (6 - 0)) / 10 = 1.6
    x = rows([0, 2, 4, 6, 8, 10], [5, 5, 5, 5, 5, 5])
    np.testing.assert_allclose(deltas(x), [[1.0, 1.6, 2.0, 2.0, 1.6, 1.0], [0] * 6], atol=1e-6)


def test_deltas_simple_is_the_plain_difference():
    # W = 2: (x[2] - x[0]) / 4 at the first frame
    np.testing.assert_allclose(deltas(rows([0, 1, 4, 9, 16]), 2, simple=True), [[1, 2.25, 4, 3.75, 3]])


def test_deltas_of_one_frame_are_zero():
    np.testing.assert_array_equal(deltas(rows([3], [4])), [[0], [0]])


def test_deltas_keep_layout_and_dtype():
    x = np.asfortranarray(np.random.default_rng(0).standard_normal((5, 9)), np.float32)
    for simple in (False, True):
        assert deltas(x, simple=simple).flags.f_contiguous
        assert deltas(x, simple=simple).dtype == np.float32


@pytest.mark.parametrize(("frames", "half_width"), [(0, 2), (3, 0)])
def test_deltas_without_frames_or_width(frames, half_width):
    with pytest.raises(ShapeError, match=f"{frames} frames, half width {half_width}; expected at least 1 of each"):
        deltas(np.zeros((2, frames), np.float32, order="F"), half_width)


def test_normalise_energy_floors_and_scales():
    # 10 dB are ln 10 = 2.302585 in log energy: the floor of 10 dB below 7 is 4.697415.
    energy = np.array([7.0, 6.0, 1.0])
    expected = [1.0, 1.0 - 0.5 * 1.0, 1.0 - 0.5 * 2.302585]
    np.testing.assert_allclose(normalise_energy(energy, 0.5, 10.0), expected, atol=1e-6)


def test_subtract_mean_is_exact_for_long_utterances():
    # Summed in float32, the mean of these values would be off by about 0.02.
    x = np.asfortranarray(np.full((1, 300_000), 1e4 + 0.1, np.float32))
    subtract_mean(x)
    assert abs(x).max() <= 1e-3
