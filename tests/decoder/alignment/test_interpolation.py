"""Times of boundaries between frames, against their definition and speech whose times are known."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder.alignment.aligner import Aligner
from decoder.alignment.interpolation import FARTHEST, SCALE, FrameTimes, boundary_times, offsets
from decoder.graph.phone_models import PhoneModels
from decoder.graph.transcript import TranscriptGraphs
from tests.decoder.alignment.test_aligner import DICTIONARY, monophones, scores_for

FINE = FrameTimes(100_000, 75_000, is_fine=True)


def aligned(seed: int, num_frames: int = 17, spread: float = 3.0):
    rng = np.random.default_rng(seed)
    models = monophones(rng)
    scores = spread * scores_for(models, num_frames, rng)
    return Aligner(TranscriptGraphs(models, DICTIONARY)).align(["X", "Y"], scores), scores


def plain_offset(alignment, scores, visit: int, scale: float) -> float:
    """How many frames of the two beside a boundary the left state has, less one."""
    left, right = (int(alignment.graph.row[alignment.position[i]]) for i in (visit, visit + 1))
    boundary = int(alignment.end[visit])
    share = 0.0
    for frame in (boundary - 1, boundary):
        difference = float(scores[left, frame]) - float(scores[right, frame])
        share += 1 / (1 + math.exp(-SCALE * scale * difference))
    return min(max(share - 1, -FARTHEST), FARTHEST)


@pytest.mark.parametrize("scale", [1.0, 0.4])
def test_offsets_are_those_of_the_definition(scale):
    for seed in range(5):
        alignment, scores = aligned(seed)
        expected = [plain_offset(alignment, scores, visit, scale) for visit in range(len(alignment.start) - 1)]
        found = offsets(alignment, scores, scale)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert np.ptp(found) > 0.2
        times = boundary_times(alignment, scores, FINE, 1_900_000.0, scale)
        centres = 125_000 + 100_000 * (alignment.start[1:] - 0.5)
        np.testing.assert_allclose(times[1:-1], centres + 100_000 * np.array(expected), atol=5_000)
        assert (times[0], times[-1]) == (0, 1_900_000)


def test_times_on_the_grid_of_frames_are_whole_periods():
    alignment, scores = aligned(3)
    times = boundary_times(alignment, scores, FrameTimes(300_000), 5e6)
    assert times.tolist() == [300_000 * frame for frame in [*alignment.start.tolist(), 17]]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.01, 100.0))
def test_boundaries_ascend_and_states_of_a_frame_keep_a_part_of_it(seed, spread):
    alignment, scores = aligned(seed, spread=spread)
    times = boundary_times(alignment, scores, FINE, 1_850_000.0)
    assert all(end - start >= 20_000 - 10_000 for start, end in itertools.pairwise(times))
    frames = np.append(alignment.start, 17) * 100_000
    assert np.abs(times - frames - 75_000)[1:-1].max() <= 40_000 + 5_000


def test_equal_and_impossible_scores_give_the_middle():
    alignment, scores = aligned(1)
    for value in (0.0, -np.inf):
        assert not offsets(alignment, np.full_like(scores, value)).any()


def test_boundaries_of_a_known_change_are_unbiased_and_finer_than_a_frame():
    """A sound of each window's share, of 25 ms every 10 ms, scores the two phones; the other states are impossible."""
    rng = np.random.default_rng(0)
    graphs = TranscriptGraphs(PhoneModels(monophones(rng).states), DICTIONARY)
    coarse, fine = [], []
    for _ in range(100):
        change = rng.uniform(1_500_000, 1_600_000)
        windows = 100_000 * np.arange(40)[:, None] + np.linspace(0, 250_000, 101)
        scores = np.full((graphs.num_rows, 40), -100, np.float32)
        scores[graphs.rows["a_s2"]] = 8 * (windows > change).mean(axis=1)
        scores[graphs.rows["c_s2"]] = 8 - scores[graphs.rows["a_s2"]]
        alignment = Aligner(graphs).align(["Y"], scores)
        coarse.append(boundary_times(alignment, scores, FrameTimes(100_000), 4_150_000.0)[1] - change)
        fine.append(boundary_times(alignment, scores, FINE, 4_150_000.0)[1] - change)
    assert np.mean(coarse) == pytest.approx(-75_000, abs=10_000)
    assert np.mean(fine) == pytest.approx(0, abs=5_000)
    assert np.abs(fine).mean() < 0.6 * np.abs(np.array(coarse) + 75_000).mean()
