"""Any number of sentences of an invented language, in which each word depends on the two before it.

Each word has FOLLOWERS frequent successors, and each pair of words has FAVOURITES among them.  The next word
is one of the favourites, one of the followers, or any word; words are drawn with Zipf's weights.  The
successors are hashes of the words' numbers, so that no table is needed.
"""

from collections.abc import Iterator, Sequence

import numpy as np

FOLLOWERS, FAVOURITES = 40, 5
SHARES = (0.45, 0.30)  # probabilities of a favourite and of a follower; otherwise any word
ZIPF, OFFSET = 1.05, 5.0  # the word of rank r has weight 1 / (r + OFFSET)^ZIPF
MEAN_LENGTH, LEAST_LENGTH = 16, 4
BATCH = 2000  # sentences that are generated in parallel


class Language:
    """A language.  seed: determines the followers; words 0 .. num_words-1 are ranks."""

    def __init__(self, num_words: int, seed: int):
        self._unigram = _sums((np.arange(num_words) + OFFSET) ** -ZIPF)
        self._follower, self._favourite = (_sums(1 / np.arange(1.0, n + 1)) for n in (FOLLOWERS, FAVOURITES))
        self._seed, self._start = seed, num_words

    def sentences(self, num_words: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Yield sentences as arrays of word numbers until there are at least num_words words."""
        made = 0
        while made < num_words:
            lengths = np.maximum(LEAST_LENGTH, rng.poisson(MEAN_LENGTH, BATCH))
            table = self._table(lengths.max(), rng)
            for sentence, length in zip(table, lengths):
                if made >= num_words:
                    return
                made += length
                yield sentence[:length]

    def _table(self, length: int, rng: np.random.Generator) -> np.ndarray:
        """Return (BATCH, length) words."""
        words = np.full((BATCH, length + 2), self._start, dtype=np.int64)
        for place in range(2, length + 2):
            before, last = words[:, place - 2], words[:, place - 1]
            kind, draw = rng.random((2, BATCH))
            follower = _draw(self._follower, draw)
            favourite = self._hash(before, last, _draw(self._favourite, draw)) % FOLLOWERS
            chosen = np.where(kind < SHARES[0], favourite, follower)
            uniform = self._hash(last, chosen, np.full_like(last, -1)) / 2.0**32
            uniform = np.where(kind < sum(SHARES), uniform, rng.random(BATCH))
            words[:, place] = _draw(self._unigram, uniform)
        return words[:, 2:]

    def _hash(self, *numbers: np.ndarray) -> np.ndarray:
        """Return 32 bits of a hash of the numbers and the seed, with the mixing steps of splitmix64."""
        mixed = np.full(numbers[0].shape, self._seed + 1, dtype=np.uint64)
        for number in numbers:
            mixed = (mixed ^ number.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(27)
        return (mixed >> np.uint64(32)).astype(np.int64)


def _sums(weights: np.ndarray) -> np.ndarray:
    sums = np.cumsum(weights)
    return sums / sums[-1]


def _draw(sums: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    return np.minimum(np.searchsorted(sums, uniform, side="right"), len(sums) - 1)


def as_text(sentences: Iterator[np.ndarray], words: Sequence[str]) -> Iterator[list[str]]:
    for sentence in sentences:
        yield [words[number] for number in sentence]
