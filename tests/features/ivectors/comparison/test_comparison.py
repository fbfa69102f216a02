"""Comparison of speakers: error rates, the model behind the scores, and trials, against plain computations."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.ivectors.comparison.error_rates import detection_curve
from features.ivectors.comparison.plda import Plda, train_plda
from features.ivectors.comparison.trials import pairs_of_halves, pairs_of_utterances, read_trials
from readers.errors import FormatError


def crossing(targets, others):
    """The equal error rate, by walking the operating points with plain counts."""
    points = []
    for threshold in [*sorted({*targets, *others}), np.inf]:
        miss = sum(score < threshold for score in targets) / len(targets)
        false_alarm = sum(score >= threshold for score in others) / len(others)
        points.append((miss, false_alarm))
    for (m0, f0), (m1, f1) in pairwise(points):
        if m0 <= f0 and m1 >= f1:
            a, b = f0 - m0, m1 - f1
            return m0 if a + b == 0 else m0 + a / (a + b) * (m1 - m0)
    raise AssertionError("no crossing")


SCORES = st.lists(st.integers(-6, 6).map(float), min_size=1, max_size=12)


@given(SCORES, SCORES)
def test_the_equal_error_rate_is_where_plain_counts_cross(targets, others):
    scores = np.array([*targets, *others])
    curve = detection_curve(scores, np.arange(len(scores)) < len(targets))
    assert curve.equal_error[0] == pytest.approx(crossing(targets, others), abs=1e-12)


@pytest.mark.parametrize(
    ("targets", "others", "rate"),
    [
        ([2, 3], [0, 1], 0.0),
        ([0, 1], [2, 3], 1.0),
        ([1, 2, 3, 4], [-2, -1, 0, 1.5], 0.25),
        ([1], [1], 0.5),
        ([1, 3], [0, 2], 0.5),
    ],
)
def test_equal_error_rates_that_can_be_counted(targets, others, rate):
    scores = np.array([*targets, *others], float)
    curve = detection_curve(scores, np.arange(len(scores)) < len(targets))
    assert curve.equal_error[0] == pytest.approx(rate)


def test_gaussian_scores_have_the_equal_error_rate_of_their_distance():
    random = np.random.default_rng(1)
    scores = np.concatenate([random.standard_normal(40_000) + 2, random.standard_normal(40_000)])
    curve = detection_curve(scores, np.arange(80_000) < 40_000)
    rate, threshold = curve.equal_error
    assert rate == pytest.approx(0.15866, abs=0.004)  # of a standard normal below -1
    assert threshold == pytest.approx(1, abs=0.03)


def log_density(value, covariance):
    """Of a Gaussian without mean, by the definition."""
    square = value @ np.linalg.solve(covariance, value)
    return -0.5 * (square + np.linalg.slogdet(covariance)[1] + len(value) * np.log(2 * np.pi))


def test_scores_are_likelihood_ratios_of_all_vectors_of_both_sides():
    random = np.random.default_rng(2)
    between = np.array([3.0, 0.5])
    unit = np.eye(2)
    plda = Plda(np.zeros(2), unit, unit, np.zeros(2), between)
    sides = [random.standard_normal((count, 2)) for count in (3, 2)]

    def density(vectors):
        count = len(vectors)
        covariance = np.kron(np.ones((count, count)), np.diag(between)) + np.eye(2 * count)
        return log_density(vectors.ravel(), covariance)

    expected = density(np.concatenate(sides)) - density(sides[0]) - density(sides[1])
    means = [side.mean(axis=0)[None] for side in sides]
    score = plda.scores(means[0], np.array([3.0]), means[1], np.array([2.0]))
    assert score[0] == pytest.approx(expected)


def test_training_finds_the_directions_of_speakers():
    random = np.random.default_rng(3)
    # In 20 values, speakers differ in two, and the utterances of one in two others, by more.
    deviations = np.full(20, 0.5)
    deviations[2:4] = 4.0
    speakers = []
    for _ in range(200):
        offset = np.zeros(20)
        offset[:2] = 2.0 * random.standard_normal(2)
        speakers.append(5 + offset + deviations * random.standard_normal((6, 20)))
    plda = train_plda(speakers, dim=2)
    assert plda.between[0] >= plda.between[1] > 5
    weights = np.abs(plda.transform @ plda.whitening)
    assert weights[:, :2].min(axis=0).min() >= 0
    assert weights[:, :2].max(axis=1).min() > 5 * weights[:, 2:].max()
    projected = [plda.project(vectors) for vectors in speakers]
    within = np.mean([((vectors - vectors.mean(axis=0)) ** 2).sum(axis=0) / 5 for vectors in projected], axis=0)
    np.testing.assert_allclose(within, 1, rtol=0.15)
    assert np.abs(np.concatenate(projected).mean(axis=0)).max() < 1e-6


def test_a_value_that_never_changes_and_a_model_of_two_speakers_do_no_harm():
    random = np.random.default_rng(4)
    speakers = [np.hstack([random.standard_normal((3, 4)) + 3 * n, np.ones((3, 1))]) for n in range(2)]
    plda = train_plda(speakers)
    left, right = (plda.project(vectors[:1]) for vectors in speakers)
    assert np.isfinite(plda.scores(left, np.ones(1), right, np.ones(1))).all()


VECTORS = {
    "anna": {"a1": np.array([1.0]), "a2": np.array([2.0]), "a3": np.array([3.0])},
    "ben": {"b1": np.array([4.0]), "b2": np.array([5.0])},
    "cleo": {"c1": np.array([6.0])},
}


def content(trials):
    names = [side.name for side in trials.sides]
    return [(names[a], names[b], bool(t)) for a, b, t in zip(trials.left, trials.right, trials.is_target)]


def test_pairs_of_utterances_are_all_pairs_once():
    pairs = content(pairs_of_utterances(VECTORS))
    assert len(pairs) == 6 * 5 // 2
    assert {pair[:2] for pair in pairs if pair[2]} == {("a1", "a2"), ("a1", "a3"), ("a2", "a3"), ("b1", "b2")}


def test_halves_leave_out_a_speaker_with_one_utterance():
    trials = pairs_of_halves(VECTORS)
    speakers = ("anna", "ben")
    assert content(trials) == [(f"{a}/1", f"{b}/2", a == b) for a, b in product(speakers, speakers)]
    assert {side.name: side.vectors[:, 0].tolist() for side in trials.sides} == {
        "anna/1": [1], "anna/2": [2, 3], "ben/1": [4], "ben/2": [5],
    }  # fmt: skip


def test_trials_name_utterances_or_speakers(tmp_path):
    path = tmp_path / "trials"
    path.write_text("anna b1 nontarget\nb1 b2 target\n")
    trials = read_trials(path, VECTORS)
    assert content(trials) == [("anna", "b1", False), ("b1", "b2", True)]
    assert trials.sides[0].vectors[:, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("line", "message"),
    [("a1 b1", "expected `name name target` or `... nontarget`"), ("a1 dora target", "'dora' is neither an utterance")],
)
def test_broken_trials_are_refused_with_their_line(tmp_path, line, message):
    path = tmp_path / "trials"
    path.write_text(f"a1 a2 target\n{line}\n")
    with pytest.raises(FormatError, match=f"trials:2: .*{message}"):
        read_trials(path, VECTORS)
