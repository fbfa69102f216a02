"""What is measured of an aligned utterance, and the features of its phones, words and sentence.

All measures come from the posterior probabilities of phones in the frames, with equal priors of the network's outputs,
see `decoder.alignment.goodness`, and from the times of the alignment.  They are the same for networks of cross entropy
and of lattice-free MMI, whose outputs are taken as log-likelihoods, and for Gaussians.

References
----------
Witt and Young, Phone-level pronunciation scoring and assessment for interactive language learning, Speech Communication
30, 2000; Hu, Qian, Soong and Wang, Improved mispronunciation detection with deep neural network trained acoustic
models, Speech Communication 67, 2015.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from decoder.alignment.frames import SILENCE, AlignedPhone

FLOOR = -14.0  # of log posteriors; below, they say nothing but that the phone is another one
LEAST_POSTERIOR = 1e-4  # of means over a segment
EDGE = 3  # the first and the last third of a segment
BAD_PHONE, BAD_WORD = 1.5, 7.0  # scores; the share of those below tells of the sentence
PAUSE = 0.2  # seconds of silence between words that are heard as a pause
NUM_BASIC = 11  # see `_basic`
SHARE_BEST = 8  # column of `_basic`
NUM_WORD, NUM_SENTENCE = 51, 48  # features


@dataclass(frozen=True)
class Measures:
    """Measures of an utterance with n phones in N words; P is the number of phones of the network.

    Attributes
    ----------
    rows, words : (n,) int
        Row of each phone, and its word.
    basic : (n, 11) float64
        See `_basic`.
    means : (n, P) float64
        Mean log posterior probability of each phone of the network over the segment.
    posteriors : (n, P) float64
        Logarithms of the mean posterior probabilities.
    times : (n, 2) float64
        Start and end in seconds.
    pauses : (N + 1,) float64
        Seconds of silence before each word and after the last one.
    """

    rows: np.ndarray
    words: np.ndarray
    basic: np.ndarray
    means: np.ndarray
    posteriors: np.ndarray
    times: np.ndarray
    pauses: np.ndarray


def measure(log_posteriors: np.ndarray, phones: Sequence[AlignedPhone], period: float) -> Measures:
    """Measure the phones of an alignment.

    Parameters
    ----------
    log_posteriors : (P, T) array
        Of each phone in each frame.
    phones : sequence of AlignedPhone
        By time; words are numbered from 0 without gaps.
    period : float
        Seconds of a frame.

    Returns
    -------
    Measures
    """
    spoken = [phone for phone in phones if phone.word != SILENCE]
    pauses = np.zeros(spoken[-1].word + 2)
    word = 0
    for phone in phones:
        if phone.word == SILENCE:
            pauses[word] += (phone.end - phone.start) * period
        else:
            word = phone.word + 1
    logs = np.maximum(log_posteriors, FLOOR).astype(np.float64)
    spans = [logs[:, phone.start : phone.end] for phone in spoken]
    rows = np.array([phone.row for phone in spoken])
    means = np.array([span.mean(axis=1) for span in spans])
    averages = np.array([np.exp(span).mean(axis=1) for span in spans])
    basic = np.array([_basic(span, row, period) for span, row in zip(spans, rows)])
    return Measures(
        rows=rows,
        words=np.array([phone.word for phone in spoken]),
        basic=basic,
        means=means,
        posteriors=np.log(np.maximum(averages, LEAST_POSTERIOR)),
        times=np.array([(phone.start, phone.end) for phone in spoken]) * period,
        pauses=pauses,
    )


def _basic(span: np.ndarray, row: int, period: float) -> list[float]:
    """Return the measures of a segment with log posteriors (P, T).

    Of the phone that should be there: mean, minimum, maximum, means of the first and the last third, mean distance to
    the best phone of each frame, distance of the mean to that of the best other phone, logarithm of the mean posterior,
    fraction of the frames where it is best; then the entropy of the posteriors, and the logarithm of the duration.
    """
    canonical = span[row]
    edge = max(1, len(canonical) // EDGE)
    means = span.mean(axis=1)
    competitors = np.delete(means, row)
    posteriors = np.exp(span)
    return [
        canonical.mean(),
        canonical.min(),
        canonical.max(),
        canonical[:edge].mean(),
        canonical[-edge:].mean(),
        (canonical - span.max(axis=0)).mean(),
        means[row] - competitors.max(initial=FLOOR),
        np.log(max(posteriors[row].mean(), LEAST_POSTERIOR)),
        (span.argmax(axis=0) == row).mean(),
        -(posteriors * span).sum(axis=0).mean(),
        np.log(len(canonical) * period),
    ]


def num_phone_features(num_phones: int) -> int:
    """Return the number of features of a phone, for a network of so many phones."""
    return 7 * NUM_BASIC + 3 * num_phones + 3


def phone_features(measures: Measures) -> np.ndarray:
    """Return the features (n, 7 * 11 + 3 P + 3) of the phones of an utterance.

    The measures of the phone, those before and after it, and their means in word and sentence, least values in the word
    and deviations in the sentence; all phones' log posteriors, relative and absolute; which phone it is, and where.
    """
    basic = measures.basic
    zero = np.zeros((1, basic.shape[1]))
    size = len(basic)
    of_word = mean_by(basic, measures.words)[measures.words]
    least = np.full((measures.words[-1] + 1, basic.shape[1]), np.inf)
    np.minimum.at(least, measures.words, basic)
    change = np.diff(measures.words, prepend=-1, append=measures.words[-1] + 1) != 0
    counts = np.bincount(measures.words)[measures.words]
    return np.column_stack(
        [
            basic,
            np.concatenate([zero, basic[:-1]]),
            np.concatenate([basic[1:], zero]),
            np.tile(basic.mean(axis=0), (size, 1)),
            np.tile(basic.std(axis=0), (size, 1)),
            of_word,
            least[measures.words],
            measures.means - measures.means[np.arange(size), measures.rows][:, None],
            measures.posteriors,
            np.eye(measures.means.shape[1])[measures.rows],
            change[:-1],
            change[1:],
            counts,
        ]
    )


def word_features(measures: Measures, phone_scores: np.ndarray) -> np.ndarray:
    """Return the features (N, 51) of the words of an utterance.

    phone_scores (n,): estimates of the scores of its phones.
    """
    words = measures.words
    num_words = words[-1] + 1
    counts = np.bincount(words)
    least = np.full(num_words, np.inf)
    most = np.full(num_words, -np.inf)
    np.minimum.at(least, words, phone_scores)
    np.maximum.at(most, words, phone_scores)
    mean = np.bincount(words, phone_scores) / counts
    lowest = np.full((num_words, measures.basic.shape[1]), np.inf)
    np.minimum.at(lowest, words, measures.basic)
    firsts = np.flatnonzero(np.diff(words, prepend=-1))
    lasts = np.append(firsts[1:], len(words)) - 1
    seconds = measures.times[lasts, 1] - measures.times[firsts, 0]
    of_sentence = [phone_scores.mean(), phone_scores.min(), phone_scores.std(), mean.min(), np.log(num_words)]
    of_word = [
        mean, least, most, mean * counts, counts, np.log(counts), np.log(seconds / counts), measures.pauses[:-1],
        measures.pauses[1:], np.arange(num_words) == 0, np.arange(num_words) == num_words - 1, least - of_sentence[0],
        mean - of_sentence[0],
    ]  # fmt: skip
    basic = measures.basic
    same = np.tile([*of_sentence, *basic.mean(axis=0)], (num_words, 1))
    return np.column_stack([*of_word, mean_by(basic, words), lowest, same])


def sentence_features(measures: Measures, phone_scores: np.ndarray, word_scores: np.ndarray) -> np.ndarray:
    """Return the features (1, 48) of an utterance.

    phone_scores (n,), word_scores (N,): estimates of the scores of its phones and words.  With the estimates, their
    spread and the worst of them, what the ear takes for fluency: phones per second with pauses and without, share of
    silence between the words, number and length of pauses, and how much the durations of the phones vary.
    """
    seconds = np.diff(measures.times, axis=1)[:, 0]
    inner = measures.pauses[1:-1]
    duration = measures.times[-1, 1] - measures.times[0, 0]
    num_phones = len(measures.rows)
    num_words = len(word_scores)
    pauses = inner[inner >= PAUSE]
    spread = [
        statistic
        for scores in (phone_scores, word_scores)
        for statistic in (
            scores.mean(), scores.min(), scores.max(), scores.std(), *np.quantile(scores, (0.1, 0.25, 0.5)),
        )
    ]  # fmt: skip
    timing = [
        np.log(num_phones / seconds.sum()), np.log(num_phones / duration), inner.sum() / duration,
        len(pauses) / num_words, np.log1p(pauses.sum()), inner.max(initial=0.0), np.log(seconds).std(),
        np.log(num_phones), np.log(num_words), num_phones / num_words, (phone_scores < BAD_PHONE).mean(),
        (word_scores < BAD_WORD).mean(),
    ]  # fmt: skip
    basic = measures.basic
    return np.array([[*spread, *timing, *basic.mean(axis=0), *basic.std(axis=0)]])


def mean_by(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the means (G, k) of the rows of values (n, k) in each of G groups."""
    sums = np.zeros((groups.max() + 1, values.shape[1]))
    np.add.at(sums, groups, values)
    return sums / np.bincount(groups)[:, None]
