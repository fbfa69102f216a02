"""The model of i-vectors and its EM algorithm, compared with plain float64 computations."""

import numpy as np
import pytest

from features.ivectors.extractor import Extractor, Statistics, initial_extractor, reflection
from tests.features.ivectors.corpus import log_gaussian, random_covariances

UNITS, GAUSSIANS, VALUES, SIZE = 9, 4, 3, 5


@pytest.fixture
def random():
    return np.random.default_rng(11)


@pytest.fixture
def data(random):
    """Frames of each unit with fixed posterior probabilities of the Gaussians."""
    found = []
    for unit in range(UNITS):
        frames = 2 * random.standard_normal((20 + unit, VALUES)) + random.standard_normal(VALUES)
        shares = random.random((len(frames), GAUSSIANS))
        found.append((frames, shares / shares.sum(axis=1, keepdims=True)))
    return found


@pytest.fixture
def extractor(random):
    projections = random.standard_normal((GAUSSIANS, VALUES, SIZE))
    return Extractor(projections, random_covariances(random, GAUSSIANS, VALUES), 3.0)


def statistics(data):
    return Statistics(
        np.array([shares.sum(axis=0) for _, shares in data]), np.array([shares.T @ frames for frames, shares in data])
    )


def products(data):
    return np.array([sum((shares[:, c] * frames.T) @ frames for frames, shares in data) for c in range(GAUSSIANS)])


def posterior(extractor, frames, shares):
    """Mean and covariance of the i-vector, frame by frame."""
    precision, linear = np.eye(SIZE), extractor.offset * np.eye(SIZE)[0]
    for x, row in zip(frames, shares):
        for c, share in enumerate(row):
            part = extractor.projections[c].T @ np.linalg.inv(extractor.covariances[c])
            precision = precision + share * part @ extractor.projections[c]
            linear = linear + share * part @ x
    return np.linalg.solve(precision, linear), np.linalg.inv(precision)


def log_likelihood(extractor, data):
    """ln of the integral over the i-vectors, from the joint density at the mean: p(x) = p(x, w) / p(w | x)."""
    total = 0.0
    for frames, shares in data:
        mean, covariance = posterior(extractor, frames, shares)
        total += log_gaussian(mean, extractor.offset * np.eye(SIZE)[0], np.eye(SIZE))
        total -= log_gaussian(mean, mean, covariance)
        for x, row in zip(frames, shares):
            for c, share in enumerate(row):
                total += share * log_gaussian(x, extractor.projections[c] @ mean, extractor.covariances[c])
    return total


def test_expected_ivectors(extractor, data):
    found = extractor.expected(*extractor.terms(statistics(data)))
    for unit, (frames, shares) in enumerate(data):
        mean, _ = posterior(extractor, frames, shares)
        np.testing.assert_allclose(found[unit], mean - extractor.offset * np.eye(SIZE)[0], atol=1e-9)


def test_without_frames_the_ivector_is_zero(extractor):
    nothing = Statistics(np.zeros((1, GAUSSIANS)), np.zeros((1, GAUSSIANS, VALUES)))
    np.testing.assert_allclose(extractor.expected(*extractor.terms(nothing)), 0, atol=1e-12)


def test_the_likelihood_is_that_of_the_definition(extractor, data):
    sums = extractor.sums(statistics(data))
    found = sums.log_likelihood + extractor.square_likelihood(sums.occupancy, products(data))
    np.testing.assert_allclose(found, log_likelihood(extractor, data), rtol=1e-10)


def test_an_e_step_and_an_m_step_are_those_of_the_formulas(extractor, data):
    """Projections and covariances by the formulas, with expectations frame by frame; the prior is compared below."""
    new = extractor.estimate(extractor.sums(statistics(data)), products(data), 1e-6 * np.eye(VALUES))
    means = [posterior(extractor, frames, shares) for frames, shares in data]
    for c in range(GAUSSIANS):
        cross = sum(np.outer(shares[:, c] @ frames, mean) for (frames, shares), (mean, _) in zip(data, means))
        scatter = sum(
            shares[:, c].sum() * (covariance + np.outer(mean, mean))
            for (_, shares), (mean, covariance) in zip(data, means)
        )
        projection = cross @ np.linalg.inv(scatter)
        count = sum(shares[:, c].sum() for _, shares in data)
        covariance = (products(data)[c] - projection @ cross.T) / count
        np.testing.assert_allclose(new.covariances[c], covariance, atol=1e-8)
        # The i-vectors are transformed, so only the means that they give can be compared.
        for mean, _ in means:
            transformed = transform_of(extractor, data, new) @ mean
            np.testing.assert_allclose(new.projections[c] @ transformed, projection @ mean, atol=1e-7)


def transform_of(extractor, data, new):
    """The transform of the i-vectors: from the projections before it, which the formulas give."""
    means = [posterior(extractor, frames, shares) for frames, shares in data]
    before = []
    for c in range(GAUSSIANS):
        cross = sum(np.outer(shares[:, c] @ frames, mean) for (frames, shares), (mean, _) in zip(data, means))
        scatter = sum(
            shares[:, c].sum() * (covariance + np.outer(mean, mean))
            for (_, shares), (mean, covariance) in zip(data, means)
        )
        before.append(cross @ np.linalg.inv(scatter))
    inverse = np.linalg.lstsq(np.concatenate(before), np.concatenate(new.projections), rcond=None)[0]
    return np.linalg.inv(inverse)


def test_the_new_prior_has_unit_covariance_and_a_mean_in_the_first_coordinate(extractor, data):
    new = extractor.estimate(extractor.sums(statistics(data)), products(data), 1e-6 * np.eye(VALUES))
    transform = transform_of(extractor, data, new)
    means = [posterior(extractor, frames, shares) for frames, shares in data]
    mean = np.mean([one for one, _ in means], axis=0)
    second = np.mean([covariance + np.outer(one, one) for one, covariance in means], axis=0)
    covariance = transform @ (second - np.outer(mean, mean)) @ transform.T
    np.testing.assert_allclose(covariance, np.eye(SIZE), atol=1e-6)
    np.testing.assert_allclose(transform @ mean, new.offset * np.eye(SIZE)[0], atol=1e-6)
    assert new.offset > 0
    counts = sum(shares.sum(axis=0) for _, shares in data)
    average = sum(
        count * one.T @ np.linalg.inv(covariance) @ one
        for count, one, covariance in zip(counts, new.projections, new.covariances)
    )
    rest = average[1:, 1:]
    np.testing.assert_allclose(rest, np.diag(np.diag(rest)), atol=1e-7 * np.abs(rest).max())
    assert (np.diff(np.diag(rest)) <= 0).all()


def test_the_likelihood_never_falls(data):
    occupancy, total = statistics(data)
    square = products(data)
    extractor, floor = initial_extractor(occupancy.sum(axis=0), total.sum(axis=0), square, SIZE, seed=3)
    found = []
    for _ in range(25):
        sums = extractor.sums(statistics(data))
        found.append(sums.log_likelihood + extractor.square_likelihood(sums.occupancy, square))
        extractor = extractor.estimate(sums, square, floor)
    assert (np.diff(found) > -1e-8).all()
    assert found[-1] > found[0] + 1


def test_a_gaussian_without_frames_keeps_its_matrices(extractor, data):
    occupancy, total = statistics(data)
    occupancy[:, 2], total[:, 2] = 0, 0
    square = products(data)
    square[2] = 0
    new = extractor.estimate(extractor.sums(Statistics(occupancy, total)), square, 1e-6 * np.eye(VALUES))
    np.testing.assert_array_equal(new.covariances[2], extractor.covariances[2])
    assert np.isfinite(new.projections).all()


def test_a_reflection_moves_a_vector_to_the_first_axis(random):
    for vector in (random.standard_normal(4), np.array([2.0, 0, 0, 0]), np.array([-1.0, 0, 0, 0])):
        found = reflection(vector)
        np.testing.assert_allclose(found @ found.T, np.eye(4), atol=1e-12)
        np.testing.assert_allclose(found @ vector, np.linalg.norm(vector) * np.eye(4)[0], atol=1e-12)
