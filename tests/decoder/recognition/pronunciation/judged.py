"""Utterances of made-up speakers whose phones are right or wrong, with the scores of an expert who hears it."""

import numpy as np

from decoder.alignment.frames import AlignedPhone
from decoder.recognizer.jobs.pronunciation.fitting import JudgedUtterance
from decoder.recognizer.jobs.pronunciation.measures import measure
from decoder.recognizer.jobs.pronunciation.model import Scores

PHONES = ("a", "b", "c", "sil")
PERIOD = 0.01


def utterance(rng: np.random.Generator, speaker: str, share_wrong: float) -> JudgedUtterance:
    """Return an utterance of four words of two phones, of which a share is wrong, another phone being said."""
    rows = rng.integers(0, 3, 8)
    wrong = rng.random(8) < share_wrong
    said = np.where(wrong, (rows + 1) % 3, rows)
    lengths = rng.integers(4, 10, 8)
    ends = np.cumsum(lengths)
    scores = rng.normal(size=(4, ends[-1]))
    scores[np.repeat(said, lengths), np.arange(ends[-1])] += 4
    log_posteriors = scores - np.log(np.exp(scores).sum(axis=0))
    phones = [
        AlignedPhone(PHONES[row], int(row), int(end - length), int(end), word // 2)
        for word, (row, end, length) in enumerate(zip(rows, ends, lengths))
    ]
    of_phones = np.where(wrong, 0.4, 1.9)
    of_words = 5 * of_phones.reshape(4, 2).mean(axis=1)
    return JudgedUtterance(
        speaker, measure(log_posteriors, phones, PERIOD), Scores(of_phones, of_words, float(of_words.mean()))
    )


def corpus(seed: int, num_speakers: int = 6, size: int = 12) -> list[JudgedUtterance]:
    """Return utterances of speakers of whom some make more mistakes than others."""
    rng = np.random.default_rng(seed)
    shares = np.linspace(0.05, 0.6, num_speakers)
    return [utterance(rng, f"speaker{i}", share) for i, share in enumerate(shares) for _ in range(size)]
