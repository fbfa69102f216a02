"""Calibration error and cross entropy of confidences, and which recognised words are right."""

import numpy as np
import pytest

from decoder.scoring import expected_calibration_error, judge_words, normalised_cross_entropy, reliability


def test_perfect_confidences_have_no_error():
    rng = np.random.default_rng(0)
    confidence = rng.random(200_000)
    correct = rng.random(200_000) < confidence
    assert expected_calibration_error(confidence, correct) < 0.005
    assert expected_calibration_error(np.clip(confidence + 0.1, 0, 1), correct) == pytest.approx(0.095, abs=0.006)
    # The mean of 1 + (p ln p + (1 - p) ln(1 - p)) / ln 2 over p in [0, 1].
    assert normalised_cross_entropy(confidence, correct) == pytest.approx(1 - 0.5 / np.log(2), abs=0.01)


def test_bins_have_equal_numbers_of_words_and_equal_confidences_count_the_same():
    confidence = np.array([0.2, 0.9, 0.9, 0.9, 0.9, 0.4])
    correct = np.array([False, True, True, True, False, True])
    for order in (slice(None), slice(None, None, -1)):
        found = reliability(confidence[order], correct[order], 3)
        np.testing.assert_allclose(found.confidence, [0.3, 0.9, 0.9])
        np.testing.assert_allclose(found.correct, [0.5, 0.75, 0.75])
        assert found.count.tolist() == [2, 2, 2]
    assert expected_calibration_error(confidence, correct, 3) == pytest.approx((0.2 + 0.15 + 0.15) / 3)
    assert reliability(confidence[:2], correct[:2]).count.tolist() == [1, 1]


def test_cross_entropy_of_one_confidence_for_all_and_of_certainty():
    correct = np.array([True] * 9 + [False])
    assert normalised_cross_entropy(np.full(10, 0.9), correct) == pytest.approx(0.0)
    assert normalised_cross_entropy(np.where(correct, 1.0, 0.0), correct) == pytest.approx(1.0, abs=1e-5)
    assert -20 < normalised_cross_entropy(np.ones(10), correct) < -3  # one wrong word does not make it infinite
    assert np.isnan(normalised_cross_entropy(np.full(3, 0.5), np.ones(3, bool)))
    assert np.isnan(normalised_cross_entropy(np.zeros(0), np.zeros(0, bool)))
    assert np.isnan(expected_calibration_error(np.zeros(0), np.zeros(0, bool)))


def test_words_are_right_where_the_alignment_says_so():
    references = {"one": ["A", "B", "C"], "two": ["D"], "lost": ["E"]}
    hypotheses = {
        "one": [("A", 0.9), ("X", 0.4), ("C", 0.8), ("C", 0.3)],
        "set/two": [("d", 0.7), ("sil", 0.6), ("q", None)],
        "other": [("A", 0.1)],
    }
    found = judge_words(references, hypotheses, fold={"d": "D", "sil": None})
    assert found.confidence.tolist() == [0.9, 0.4, 0.8, 0.3, 0.7]
    assert found.correct.tolist() in ([True, False, True, False, True], [True, False, False, True, True])
    assert found.utterance.tolist() == [0, 0, 0, 0, 1]
    assert found.num_utterances == 2
