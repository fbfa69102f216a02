"""What is measured of an aligned utterance: values that can be computed by hand."""

import numpy as np

from decoder.alignment.frames import AlignedPhone
from decoder.recognizer.jobs.pronunciation.measures import (
    NUM_BASIC,
    NUM_SENTENCE,
    NUM_WORD,
    measure,
    num_phone_features,
    phone_features,
    sentence_features,
    word_features,
)
from tests.decoder.recognition.pronunciation.judged import corpus

POSTERIORS = np.array(
    [[0.5, 0.2, 0.25, 0.9, 0.1, 0.1], [0.25, 0.7, 0.5, 0.05, 0.8, 0.1], [0.25, 0.1, 0.25, 0.05, 0.1, 0.8]]
)
PAUSED = [
    AlignedPhone("sil", 2, 0, 1, -1),
    AlignedPhone("a", 0, 1, 2, 0),
    AlignedPhone("sil", 2, 2, 3, -1),
    AlignedPhone("a", 0, 3, 4, 1),
    AlignedPhone("b", 1, 4, 6, 1),
]


def test_basic_measures_of_a_segment():
    measures = measure(np.log(POSTERIORS), [AlignedPhone("a", 0, 0, 3, 0), AlignedPhone("b", 1, 3, 6, 0)], 0.02)
    logs = np.log(POSTERIORS[:, :3])
    expected = [
        logs[0].mean(),
        np.log(0.2),
        np.log(0.5),
        np.log(0.5),
        np.log(0.25),
        (0 + np.log(0.2 / 0.7) + np.log(0.25 / 0.5)) / 3,
        logs[0].mean() - logs[1].mean(),
        np.log((0.5 + 0.2 + 0.25) / 3),
        1 / 3,
        -(POSTERIORS[:, :3] * logs).sum() / 3,
        np.log(0.06),
    ]
    assert measures.basic.shape == (2, NUM_BASIC)
    np.testing.assert_allclose(measures.basic[0], expected, rtol=1e-12)
    np.testing.assert_allclose(measures.means[0], logs.mean(axis=1))
    np.testing.assert_allclose(measures.posteriors[1], np.log(POSTERIORS[:, 3:].mean(axis=1)))
    np.testing.assert_allclose(measures.times, [[0.0, 0.06], [0.06, 0.12]])


def test_pauses_before_words_and_after_the_last_one():
    measures = measure(np.log(POSTERIORS), PAUSED, 0.3)
    np.testing.assert_allclose(measures.pauses, [0.3, 0.3, 0.0])
    assert measures.words.tolist() == [0, 1, 1]
    assert measures.rows.tolist() == [0, 0, 1]


def test_posteriors_of_almost_zero_count_as_the_floor():
    measures = measure(np.array([[-700.0], [0.0]]), [AlignedPhone("a", 0, 0, 1, 0)], 0.01)
    assert measures.basic[0, 0] == -14.0
    assert np.isfinite(measures.basic).all()


def test_features_of_phones_know_neighbours_words_and_positions():
    measures = measure(np.log(POSTERIORS), PAUSED, 0.1)
    features = phone_features(measures)
    assert features.shape == (3, num_phone_features(3))
    previous, following = features[:, NUM_BASIC : 2 * NUM_BASIC], features[:, 2 * NUM_BASIC : 3 * NUM_BASIC]
    np.testing.assert_array_equal(previous, [np.zeros(NUM_BASIC), *measures.basic[:2]])
    np.testing.assert_array_equal(following, [*measures.basic[1:], np.zeros(NUM_BASIC)])
    of_word = features[:, 5 * NUM_BASIC : 6 * NUM_BASIC]
    np.testing.assert_allclose(of_word[1], measures.basic[1:].mean(axis=0))
    np.testing.assert_allclose(features[0, 6 * NUM_BASIC : 7 * NUM_BASIC], measures.basic[0])
    relative = features[:, 7 * NUM_BASIC : 7 * NUM_BASIC + 3]
    np.testing.assert_array_equal(relative[[0, 1, 2], [0, 0, 1]], 0)
    assert features[:, -3:].tolist() == [[1, 1, 1], [1, 0, 2], [0, 1, 2]]  # first, last, phones of the word


def test_features_of_words_and_sentences():
    measures = measure(np.log(POSTERIORS), PAUSED, 0.3)
    words = word_features(measures, np.array([2.0, 1.0, 0.5]))
    assert words.shape == (2, NUM_WORD)
    np.testing.assert_allclose(words[:, :5], [[2, 2, 2, 2, 1], [0.75, 0.5, 1.0, 1.5, 2]])
    np.testing.assert_allclose(words[:, 6:9], [[np.log(0.3), 0.3, 0.3], [np.log(0.45), 0.3, 0.0]])
    sentence = sentence_features(measures, np.array([2.0, 1.0, 0.5]), np.array([9.0, 5.0]))
    assert sentence.shape == (1, NUM_SENTENCE)
    np.testing.assert_allclose(sentence[0, [0, 1, 2, 7, 8, 9]], [3.5 / 3, 0.5, 2, 7, 5, 9])
    # Three phones in 1.2 s, 1.5 s with the pause of 0.3 s between the words.
    timing = [np.log(3 / 1.2), np.log(3 / 1.5), 0.3 / 1.5, 0.5, np.log(1.3), 0.3]
    np.testing.assert_allclose(sentence[0, 14:20], timing)


def test_every_feature_is_finite():
    for entry in corpus(0, 2, 3):
        measures, scores = entry.measures, entry.scores
        for features in (
            phone_features(measures), word_features(measures, scores.phones),
            sentence_features(measures, scores.phones, scores.words),
        ):  # fmt: skip
            assert np.isfinite(features).all()
