"""Mixtures of Gaussians and the selection of Gaussians, compared with plain float64 computations."""

import numpy as np
import pytest

from features.ivectors.background import Background
from features.ivectors.frames import SlidingMean
from features.ivectors.kernels import posteriors, select_best
from features.ivectors.mixtures import DiagonalMixture, FullMixture, floored
from features.ivectors.options import IvectorOptions
from readers.errors import ConfigError
from tests.features.ivectors.corpus import DIM, make_speakers, mixture_scores, random_covariances, soft


@pytest.fixture
def frames():
    speakers = make_speakers(4, 1, 50)
    return np.concatenate([one.T.astype(np.float64) for utterances in speakers.values() for one in utterances])


def mixture(count=5, seed=1):
    random = np.random.default_rng(seed)
    weights = random.random(count) + 0.1
    means, variances = 3 * random.standard_normal((count, DIM)), random.random((count, DIM)) + 0.3
    return DiagonalMixture(weights / weights.sum(), means, variances)


def test_scores_of_a_diagonal_mixture(frames):
    found = mixture()
    covariances = [np.diag(one) for one in found.variances]
    np.testing.assert_allclose(
        found.scores(frames), mixture_scores(frames, found.weights, found.means, covariances), atol=1e-10
    )


def test_one_step_of_em_is_that_of_the_formulas(frames):
    old, sums = mixture(), mixture().empty_sums()
    for part in (frames[:70], frames[70:]):
        old.add_sums(sums, part)
    scores = mixture_scores(frames, old.weights, old.means, [np.diag(one) for one in old.variances])
    shares = np.array([soft(row) for row in scores])
    counts = shares.sum(axis=0)
    means = (shares.T @ frames) / counts[:, None]
    variances = np.array([shares[:, c] @ (frames - means[c]) ** 2 / counts[c] for c in range(len(counts))])
    new = old.estimate(sums, np.full(DIM, 1.0))
    np.testing.assert_allclose(new.weights, counts / len(frames), atol=1e-12)
    enough, floor = counts >= 3, 1.0
    assert 2 <= enough.sum() < 5
    np.testing.assert_allclose(new.means[enough], means[enough], atol=1e-10)
    np.testing.assert_allclose(new.variances[enough], np.maximum(variances, floor)[enough], atol=1e-10)
    np.testing.assert_array_equal(new.means[~enough], old.means[~enough])
    np.testing.assert_array_equal(new.variances[~enough], old.variances[~enough])
    assert (variances[enough] < floor).any()
    np.testing.assert_allclose(sums.log_likelihood, np.log(np.exp(scores).sum(axis=1)).sum(), rtol=1e-12)


def test_one_step_of_em_with_full_covariances(frames):
    diagonal = mixture()
    random = np.random.default_rng(2)
    old = FullMixture(diagonal.weights, diagonal.means, random_covariances(random, 5, DIM))
    index = np.tile(np.arange(5, dtype=np.int32), (len(frames), 1))
    scores = mixture_scores(frames, old.weights, old.means, old.covariances)
    np.testing.assert_allclose(old.scores(frames, index), scores, atol=1e-9)
    sums = old.empty_sums()
    old.add_sums(sums, frames, index)
    shares = np.array([soft(row) for row in scores])
    counts, new = shares.sum(axis=0), old.estimate(sums, np.full(DIM, 1e-6))
    means = (shares.T @ frames) / counts[:, None]
    for c in np.flatnonzero(counts > 2 * DIM):
        centred = frames - means[c]
        np.testing.assert_allclose(new.covariances[c], (centred.T * shares[:, c]) @ centred / counts[c], atol=1e-9)


def test_selected_gaussians_only_count_what_is_selected(frames):
    full = mixture().full()
    index = np.array([[3, 0]] * len(frames), np.int32)
    sums = full.empty_sums()
    full.add_sums(sums, frames, index)
    assert sums.occupancy[[1, 2, 4]].max() == 0
    np.testing.assert_allclose(sums.occupancy.sum(), len(frames))


@pytest.mark.parametrize("count", [7, 8, 13, 14])
def test_splitting_keeps_weight_and_mean(count):
    old = mixture(7)
    new = old.split(count, np.random.default_rng(3))
    assert len(new.weights) == count
    np.testing.assert_allclose(new.weights.sum(), 1)
    np.testing.assert_allclose(new.weights @ new.means, old.weights @ old.means)
    assert len(np.unique(new.means, axis=0)) == count


def test_floored_covariances_have_no_direction_below_the_floor():
    random = np.random.default_rng(4)
    found, floor = random_covariances(random, 60, DIM), 0.4 * random_covariances(random, 1, DIM)[0]
    new = floored(found, floor)
    ratios = np.array([np.linalg.eigvals(np.linalg.solve(floor, one)).real.min() for one in new])
    before = np.array([np.linalg.eigvals(np.linalg.solve(floor, one)).real.min() for one in found])
    assert (ratios > 1 - 1e-9).all()
    assert ((before > 0.5) & (before < 1)).any()
    assert (before < 0.5).any()
    np.testing.assert_array_equal(new[before >= 1], found[before >= 1])


@pytest.mark.parametrize("kernel", [select_best, select_best.py_func])
def test_the_best_gaussians(kernel):
    random = np.random.default_rng(6)
    scores = random.integers(9, size=(40, 11)).astype(float)  # with ties
    scores[0] = -np.inf
    index, best = kernel(scores, 4)
    for row, chosen, values in zip(scores, index, best):
        expected = sorted(range(11), key=lambda c: (-row[c], c))[:4]
        assert chosen.tolist() == expected
        np.testing.assert_array_equal(values, row[expected])


@pytest.mark.parametrize("kernel", [posteriors, posteriors.py_func])
def test_posterior_probabilities_sum_to_one_after_pruning(kernel):
    random = np.random.default_rng(7)
    scores = 3 * random.standard_normal((50, 5))
    weights, total = kernel(scores, 0.025)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(total, np.log(np.exp(scores).sum(axis=1)).sum())
    for row, found in zip(scores, weights):
        shares = soft(row)
        shares[shares < 0.025] = 0
        np.testing.assert_allclose(found, shares / shares.sum(), atol=1e-12)
    assert (weights == 0).any()


def test_of_equal_gaussians_none_is_lost_to_pruning():
    weights, _ = posteriors(np.zeros((1, 100)), 0.025)
    assert weights[0, 0] == 1
    assert weights.sum() == 1


def test_full_covariances_score_what_the_diagonal_mixture_selects(frames):
    diagonal, random = mixture(), np.random.default_rng(8)
    full = FullMixture(diagonal.weights, diagonal.means, random_covariances(random, 5, DIM))
    options = IvectorOptions(select=2, min_posterior=0.0, posterior_scale=0.5)
    index, weights, _ = Background(SlidingMean(np.zeros(DIM)), diagonal, full).select(frames, options)
    scores = mixture_scores(frames, full.weights, full.means, full.covariances)
    for t, row in enumerate(diagonal.scores(frames)):
        chosen = np.argsort(-row)[:2]
        assert index[t].tolist() == chosen.tolist()
        np.testing.assert_allclose(weights[t], 0.5 * soft(scores[t, chosen]), atol=1e-9)


@pytest.mark.parametrize("cuts", [(), (1, 2, 40), (17,), (100, 101, 150)])
def test_the_sliding_mean_is_that_of_the_last_frames_with_a_prior(cuts):
    random = np.random.default_rng(9)
    frames, mean = random.standard_normal((170, 2)), np.array([5.0, -3.0])
    options = SlidingMean(mean, window=30, prior=12)
    stream = options.stream()
    found = np.concatenate([stream.push(part) for part in np.split(frames, cuts)])
    np.testing.assert_allclose(found, options.subtract(frames), atol=1e-12)
    for t in range(len(frames)):
        last = frames[max(0, t - 29) : t + 1]
        prior = min(12, 30 - len(last))
        expected = (last.sum(axis=0) + prior * mean) / (len(last) + prior)
        np.testing.assert_allclose(found[t], frames[t] - expected, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"select": 0}, "select is 0; expected 1 to 65536"),
        ({"min_posterior": 0.5}, "min_posterior is 0.5; expected at least 0, below 0.5"),
        ({"posterior_scale": 0.0}, "posterior_scale is 0; expected above 0, at most 1"),
        ({"max_count": -1.0}, "max_count is -1; expected 0 to 1000000000"),
        ({"period": 0}, "period is 0; expected 1 to 100000"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        IvectorOptions(**options)
