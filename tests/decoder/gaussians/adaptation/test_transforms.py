"""LDA, MLLT and fMLLR against plain twins; what never falls; known transforms are found again."""

import numpy as np
import pytest

from decoder.gaussians.adaptation import fmllr
from decoder.gaussians.adaptation.fmllr import FmllrSums, estimate_fmllr
from decoder.gaussians.adaptation.kernels import add_fmllr, add_gaussians, add_mllt, posteriors, product
from decoder.gaussians.adaptation.lda import LdaSums, estimate_lda
from decoder.gaussians.adaptation.mllt import estimate_mllt
from decoder.gaussians.models import mixture_arrays
from readers.errors import ShapeError
from tests.decoder.gaussians.adaptation.reference import (
    plain_estimate,
    plain_fmllr,
    plain_mllt,
    plain_objective,
    random_models,
    shares,
)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def symmetric(lower):
    lower = np.tril(lower)
    return lower + np.tril(lower, -1).swapaxes(-1, -2)


def test_products_with_spliced_frames_equal_their_plain_twin(rng):
    frames, matrix = rng.normal(size=(2, 7)), rng.normal(size=(3, 10))
    found = product(matrix, np.ascontiguousarray(np.pad(frames, ((0, 0), (2, 2)), mode="edge")), 7)
    for t in range(7):
        spliced = np.concatenate([frames[:, min(max(t + k, 0), 6)] for k in (-2, -1, 0, 1, 2)])
        np.testing.assert_allclose(found[:, t], matrix @ spliced, rtol=1e-12)


def lda_data(rng):
    state = rng.integers(0, 5, 600).astype(np.int32)
    mixing = rng.normal(size=(4, 4))
    frames = rng.normal(size=(5, 4))[state] * [3, 1, 0.5, 0.0] + rng.normal(size=(600, 4))
    return np.ascontiguousarray(frames @ mixing.T), state


def test_lda_equals_the_generalised_eigenvectors(rng):
    """Of between v = ratio within v, by another way: the eigenvectors of within^-1 between."""
    frames, state = lda_data(rng)
    sums = LdaSums.empty(6, 4)  # state 5 has no frames
    for part in (slice(0, 250), slice(250, 600)):
        one = LdaSums.empty(6, 4)
        one.add_frames(frames[part], state[part])
        sums.add(one)
    mean = frames.mean(axis=0)
    within, between = np.zeros((4, 4)), np.zeros((4, 4))
    for k in range(5):
        own = frames[state == k]
        within += (own - own.mean(axis=0)).T @ (own - own.mean(axis=0)) / 600
        between += len(own) / 600 * np.outer(own.mean(axis=0) - mean, own.mean(axis=0) - mean)
    for mine, twin in zip(sums.scatters(), (within, between)):
        np.testing.assert_allclose(mine, twin, atol=1e-10)
    rows = estimate_lda(sums, 3)
    ratios, vectors = np.linalg.eig(np.linalg.solve(within, between))
    for row, k in zip(rows, np.argsort(-ratios.real)):
        vector = vectors[:, k].real
        vector /= np.sqrt(vector @ within @ vector)
        np.testing.assert_allclose(np.abs(row), np.abs(vector), rtol=1e-7, atol=1e-9)
        assert row[np.abs(row).argmax()] > 0
        assert row @ between @ row == pytest.approx(ratios.real[k])
    np.testing.assert_allclose(rows @ within @ rows.T, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(sums.means()[5], mean, atol=1e-12)


def test_lda_of_values_that_depend_on_each_other_is_refused(rng):
    frames, state = lda_data(rng)
    frames[:, 3] = frames[:, 0] - frames[:, 1]
    sums = LdaSums.empty(5, 4)
    sums.add_frames(frames, state)
    with pytest.raises(ShapeError, match=r"^LDA: .*constant or depend on each other; expected features"):
        estimate_lda(sums, 2)


def data(rng, models, count=300):
    state = rng.integers(0, len(models.states), count).astype(np.int32)
    mean = models.means[models.first[state] + rng.integers(0, 2, count)]
    return np.ascontiguousarray(mean + rng.normal(size=mean.shape) * 0.8), state


def test_posteriors_and_sums_equal_their_plain_twins(rng):
    models = random_models(rng)
    frames, state = data(rng, models, 40)
    log_likelihood, begin, component, share = posteriors(frames, state, mixture_arrays(models), 0.0)
    for t in range(40):
        expected, total = shares(models, state[t], frames[t])
        assert log_likelihood[t] == pytest.approx(total, rel=1e-12)
        np.testing.assert_allclose(share[begin[t] : begin[t + 1]], expected, rtol=1e-10)
        assert component[begin[t] : begin[t + 1]].tolist() == [2 * state[t], 2 * state[t] + 1]
    occupancy, total, square = np.zeros(8), np.zeros((8, 3)), np.zeros((8, 3))
    add_gaussians(frames, begin, component, share, occupancy, total, square)
    for c in range(8):
        which = component == c
        weight, x = share[which], frames[np.repeat(np.arange(40), np.diff(begin))[which]]
        np.testing.assert_allclose(occupancy[c], weight.sum(), rtol=1e-12)
        np.testing.assert_allclose(total[c], weight @ x, rtol=1e-10)
        np.testing.assert_allclose(square[c], weight @ x**2, rtol=1e-10)
    _, begin, _, share = posteriors(frames, state, mixture_arrays(models), 0.5)
    assert np.all(share >= 0.5)
    assert len(share) == begin[-1] <= 40


def objective(matrix, statistics, count):
    """The auxiliary function of a transform per frame, see `estimate_mllt`."""
    quadratic = np.einsum("ij,ijk,ik->", matrix, statistics, matrix)
    return np.linalg.slogdet(matrix)[1] - quadratic / (2 * count)


def test_statistics_of_mllt_equal_their_plain_twin_and_its_objective_rises(rng):
    models = random_models(rng)
    frames, state = data(rng, models)
    turned = np.ascontiguousarray(frames @ rng.normal(size=(3, 3)))
    visits = posteriors(turned, state, mixture_arrays(models), 0.0)[1:]
    statistics = np.zeros((3, 3, 3))
    add_mllt(turned, *visits, mixture_arrays(models), statistics)
    np.testing.assert_allclose(symmetric(statistics), plain_mllt(models, turned, state), rtol=1e-8)
    statistics = symmetric(statistics)
    values = [objective(estimate_mllt(statistics, 300, n), statistics, 300) for n in range(6)]
    assert np.all(np.diff(values) > -1e-12)
    assert values[5] > values[0] + 0.01
    matrix = estimate_mllt(statistics, 300, 200)
    best = objective(matrix, statistics, 300)
    for _ in range(20):
        assert objective(matrix + 1e-3 * rng.normal(size=(3, 3)), statistics, 300) < best


def test_mllt_finds_the_transform_with_diagonal_covariances(rng):
    """Frames with full covariances, the same in all states, that a known matrix makes diagonal."""
    mixing = rng.normal(size=(3, 3))
    noise = rng.normal(size=(4000, 3)) * [1, 2, 0.5] @ mixing.T
    variance = noise.var(axis=0)
    statistics = np.array([noise.T @ noise / v for v in variance])
    covariance = (matrix := estimate_mllt(statistics, 4000.0, 200)) @ (noise.T @ noise / 4000) @ matrix.T
    # With fixed variances the rows fit these; a rotation remains, so alternate as the passes do.
    for _ in range(300):
        statistics = np.array([covariance * 4000 / v for v in covariance.diagonal()])
        turn = estimate_mllt(statistics, 4000.0, 5)
        covariance = turn @ covariance @ turn.T
    scale = np.sqrt(covariance.diagonal())
    assert np.abs(covariance / np.outer(scale, scale) - np.eye(3)).max() < 1e-6


def speaker_sums(models, frames, moved, state, silent=()):
    visits = posteriors(moved, state, mixture_arrays(models), 0.0)[1:]
    sums = FmllrSums.empty(models.dim)
    counted = ~np.isin(state, silent)
    sums.count = add_fmllr(frames, counted, *visits, mixture_arrays(models), sums.linear, sums.quadratic)
    return sums


def test_fmllr_equals_its_plain_twin(rng):
    models = random_models(rng)
    frames, state = data(rng, models)
    frames = np.ascontiguousarray(frames @ (np.eye(3) + 0.3 * rng.normal(size=(3, 3))) + 0.5)
    moved = np.ascontiguousarray(frames * 1.1 - 0.2)
    halves = [speaker_sums(models, frames[h], moved[h], state[h], [0]) for h in (slice(0, 100), slice(100, 300))]
    halves[0].add(halves[1])
    twin = plain_fmllr(models, frames, moved, state, [0])
    assert halves[0].count == pytest.approx(twin[0])
    np.testing.assert_allclose(halves[0].linear, twin[1], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(symmetric(halves[0].quadratic), twin[2], rtol=1e-8, atol=1e-8)
    found, gain = estimate_fmllr(halves[0], iterations=7)
    expected = plain_estimate(*twin, 7)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    unit = np.eye(3, 4)
    assert gain == pytest.approx((plain_objective(expected, *twin) - plain_objective(unit, *twin)) / twin[0], rel=1e-6)
    assert fmllr.objective(found, halves[0]) == pytest.approx(plain_objective(found, *twin) / twin[0])


def test_the_auxiliary_function_of_fmllr_rises_with_each_iteration(rng, monkeypatch):
    monkeypatch.setattr(fmllr, "CONVERGED", -np.inf)
    models = random_models(rng)
    frames, state = data(rng, models)
    frames = np.ascontiguousarray(frames @ (np.eye(3) + 0.5 * rng.normal(size=(3, 3))) + 1)
    sums = speaker_sums(models, frames, frames, state)
    values = [fmllr.objective(estimate_fmllr(sums, iterations=n)[0], sums) for n in range(8)]
    assert np.all(np.diff(values) > -1e-12)
    assert values[-1] > values[0] + 0.1
    best, _ = estimate_fmllr(sums, iterations=200)
    for _ in range(20):
        assert fmllr.objective(best + 1e-3 * rng.normal(size=best.shape), sums) < fmllr.objective(best, sums)
    from_start, gain = estimate_fmllr(sums, best)
    np.testing.assert_allclose(from_start, best, atol=1e-6)
    assert gain == pytest.approx(0, abs=1e-9)


def test_fmllr_finds_the_inverse_of_a_known_transform(rng):
    models = random_models(rng, per_state=1)
    state = rng.integers(0, 4, 60_000).astype(np.int32)
    clean = models.means[state] + rng.normal(size=(60_000, 3)) * np.sqrt(models.variances[state])
    matrix, shift = np.array([[1.2, 0.3, 0], [-0.2, 0.8, 0.1], [0, 0.2, 1.1]]), np.array([0.5, -1.0, 2.0])
    frames = np.ascontiguousarray((clean - shift) @ np.linalg.inv(matrix).T)
    sums = speaker_sums(models, frames, frames, state)
    found, _ = estimate_fmllr(sums, iterations=100)
    np.testing.assert_allclose(found, np.column_stack((matrix, shift)), atol=0.03)


def test_a_prior_keeps_transforms_of_few_frames_near_the_one_that_changes_nothing(rng):
    models = random_models(rng)
    frames, state = data(rng, models, 2000)
    prior = speaker_sums(models, frames, frames, state).mean_quadratic()
    few = speaker_sums(models, frames[:9] + 1, frames[:9], state[:9])
    unit = np.eye(3, 4)
    distances = [np.abs(estimate_fmllr(few.with_prior(prior, n))[0] - unit).max() for n in (10.0, 100.0, 1e4, 1e8)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-5
    with pytest.raises(np.linalg.LinAlgError):
        estimate_fmllr(speaker_sums(models, frames[:0], frames[:0], state[:0]))
