"""Noise words for noise-contrastive estimation, drawn from the unigram distribution of the vocabulary."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from readers.errors import FormatError
from readers.language.vocabulary import VocabularyWord
from readers.sources.sentences.sentences import WordStream

KEY = crc32(b"noise words")  # distinguishes these random numbers from others of the same seed


class Noise:
    """Draws noise words. Those of a minibatch depend on the seed, the epoch and the number of the minibatch only.

    Therefore a training that is resumed draws the same ones.

    Parameters
    ----------
    words : sequence of VocabularyWord
        With counts. A word that does not occur counts as one that occurs once, because every word needs a probability.
    number : int
        Noise words for each word, K.
    seed : int
    where : str
        The file of the words, for messages.

    Raises
    ------
    FormatError
        If no word has a count.
    """

    def __init__(self, words: Sequence[VocabularyWord], number: int, seed: int, where: str):
        counts = np.array([word.count for word in words], np.float64)
        if not counts.any():
            raise FormatError(
                f"{where}: no counts; expected lines `number count word class`, for the distribution of noise words"
            )
        counts = np.maximum(counts, 1)
        self.logs = np.log(counts) - np.log(counts.sum())  # (V,) ln q
        self.number = number
        self._seed = seed
        self._bounds = np.cumsum(counts) / counts.sum()
        self.begin(0, 0)

    def begin(self, epoch: int, minibatch: int) -> None:
        """Draw the words of a minibatch of an epoch from now on."""
        self._generator = np.random.default_rng((self._seed, KEY, epoch, minibatch))

    def labels(self, words: np.ndarray) -> np.ndarray:
        """Return (2 K + 2, N) float32, Fortran order, for words (N,).

        The rows are the word, ln q of it, and for each noise word its number and -ln q of it, as in CNTK.
        """
        chosen = np.empty((self.number + 1, len(words)), np.int64)
        chosen[0] = words
        drawn = np.searchsorted(self._bounds, self._generator.random((self.number, len(words))), side="right")
        chosen[1:] = np.minimum(drawn, len(self.logs) - 1)
        logs = self.logs[chosen]
        labels = np.empty((2 * len(chosen), len(words)), np.float32, order="F")
        labels[0::2] = chosen
        labels[1::2] = -logs
        labels[1] = logs[0]
        return labels


@dataclass(frozen=True, eq=False)
class NoiseStream(WordStream):
    """Labels with noise words; see Noise.labels."""

    noise: Noise = field(kw_only=True)

    @property
    def dim(self) -> int:
        return 2 * self.noise.number + 2

    def matrix(self, frames: np.ndarray, gaps: np.ndarray | None) -> np.ndarray:
        matrix = self.noise.labels(self.ids[0, frames])
        if gaps is not None:
            matrix[:, gaps] = 0
        return matrix
