"""The n-grams of a back-off model as a tree of row numbers: which row has the prefix or the suffix of another one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from decoder.lm.language_model import IMPOSSIBLE_LOG10, SENTENCE_START
from readers.errors import GraphError
from readers.language.arpa import Arpa

Rows = npt.NDArray[np.int32]  # n-grams (n, k), word ids, sorted
Indices = npt.NDArray[np.int64]
DISTINCT_FROM = 4  # words but one: of such n-grams each is taken once, as prefixes and suffixes double at each order


class NgramIndex:
    """Sorted n-grams of every order, found by their words.

    An n-gram's key is V times the row of its prefix in the order below, plus its last word, so that keys stay small
    for any vocabulary and order.

    Parameters
    ----------
    size : int
        V, the number of words.
    orders : sequence of (n, k) arrays, int32
        The n-grams of order 1, 2, ..., in any order, each once or more often.  Prefixes and suffixes that are missing
        are added.
    """

    def __init__(self, size: int, orders: Sequence[Rows]) -> None:
        self.size = size
        rows = [np.arange(size, dtype=np.int32)[:, np.newaxis], *orders[1:]]
        for k in range(len(rows) - 1, 1, -1):  # of the highest order first: its suffixes have prefixes, too
            if k >= DISTINCT_FROM:
                rows[k] = np.unique(rows[k], axis=0)
            rows[k - 1] = np.concatenate([rows[k - 1], rows[k][:, :-1], rows[k][:, 1:]])
        self._suffix: dict[int, Indices] = {}
        self.rows: list[Rows] = []
        self.prefix: list[Indices] = []
        self._keys: list[Indices] = []
        for words in rows:
            keys, first = np.unique(self.keys(words), return_index=True)
            self._keys.append(keys)
            self.rows.append(words[first])
            self.prefix.append(keys // size)

    def keys(self, words: Rows) -> Indices:
        """Return the keys (n,) of n-grams (n, k) whose prefixes are listed."""
        keys = words[:, 0].astype(np.int64)
        for length in range(1, words.shape[1] if len(keys) else 0):
            keys = self._find(keys, length) * self.size + words[:, length]
        return keys

    def find(self, words: Rows) -> Indices:
        """Return the rows (n,) of n-grams (n, k).  Raises GraphError if one is not listed."""
        return self._find(self.keys(words), words.shape[1])

    def _find(self, keys: Indices, order: int) -> Indices:
        """Return the rows (n,) of the n-grams of an order with some keys.  Raises GraphError if one is not listed."""
        rows = self.locate(keys, order)
        if (rows < 0).any():
            raise GraphError(f"language model: a {order}-gram whose prefix or suffix is not listed")
        return rows

    def locate(self, keys: Indices, order: int) -> Indices:
        """Return the rows (n,) of the n-grams of an order with some keys, -1 of one that is not listed."""
        listed = self._keys[order - 1]
        if not len(listed):
            return np.full(len(keys), -1, np.int64)
        rows = np.minimum(np.searchsorted(listed, keys), len(listed) - 1)
        return np.where(listed[rows] == keys, rows, -1)

    def suffix(self, order: int) -> Indices:
        """Return the rows of the suffixes, in the order below, of all n-grams of an order of at least 2."""
        if order not in self._suffix:
            self._suffix[order] = self.find(self.rows[order - 1][:, 1:])
        return self._suffix[order]


@dataclass(frozen=True, eq=False)
class Whole:
    """The n-grams of a model and all their prefixes and suffixes; for each order, by the rows of the index:

    probability (n,): of the last word after the words before it; backoff (n,): weight, 1 of n-grams that the model does
    not list; listed (n,): which n-grams it lists.
    """

    index: NgramIndex
    probability: list[npt.NDArray[np.float64]]
    backoff: list[npt.NDArray[np.float64]]
    listed: list[npt.NDArray[np.bool_]]


def complete(model: Arpa) -> Whole:
    """Find the prefixes and suffixes that a model does not list, with the probabilities that backing off gives them.

    The distribution of the model stays as it is; `<s>`, to which some toolkits give a probability, is never predicted.
    """
    whole = Whole(NgramIndex(len(model.vocabulary), [order.words for order in model.orders]), [], [], [])
    index = whole.index
    for k, order in enumerate(model.orders, 1):
        rows = index.find(order.words)
        listed = np.zeros(len(index.rows[k - 1]), bool)
        listed[rows] = True
        backoff = np.ones(len(listed))
        backoff[rows] = 10.0**order.backoff
        probability = np.zeros(len(listed))
        if k > 1:
            probability = whole.backoff[-1][index.prefix[k - 1]] * whole.probability[-1][index.suffix(k)]
        probability[rows] = np.where(order.logprob > IMPOSSIBLE_LOG10, 10.0**order.logprob, 0.0)
        if SENTENCE_START in model.vocabulary:
            probability[index.rows[k - 1][:, -1] == model.vocabulary.index(SENTENCE_START)] = 0.0
        whole.listed.append(listed)
        whole.backoff.append(backoff)
        whole.probability.append(probability)
    return whole


def backoff_weights(
    prefix: Indices, probability: npt.NDArray[np.float64], lower: npt.NDArray[np.float64], num_histories: int
) -> npt.NDArray[np.float64]:
    """Return what the listed words leave over what they leave of the shorter history; 1 where no word is left.

    prefix (n,): the history of each n-gram; probability, lower (n,): of its last word after this history and after the
    shorter one.
    """
    mass_left = np.maximum(1.0 - np.bincount(prefix, weights=probability, minlength=num_histories), 0.0)
    lower_left = 1.0 - np.bincount(prefix, weights=lower, minlength=num_histories)
    listed = np.bincount(prefix, minlength=num_histories)
    # Where every word is listed, both are rounding errors and the weight is not used.
    usable = (listed > 0) & (lower_left > 1e-6)
    return np.divide(mass_left, lower_left, out=np.ones(num_histories), where=usable)
