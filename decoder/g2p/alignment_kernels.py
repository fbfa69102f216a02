"""Kernels that align letters with phones: forward-backward over all segmentations of a word into graphones.

A graphone is a letter with the phones that it stands for, at most `most` of them.  The lattice of a word with L letters
and P phones has the nodes (i, j): i letters and j phones are behind; an arc leads from (i, j) to (i + 1, j + m).  Every
kernel visits the arcs in the same order, so that the graphones of the arcs of all words are one array.
"""

import numpy as np

from readers.common.arrays import Float64Array, Int32Array, Int64Array, Integer
from readers.common.kernels import njit


@njit(cache=True, nogil=True)
def _fits(i: int, j: int, num_letters: int, num_phones: int, most: int) -> bool:
    """Whether the node (i, j) can lie on a path through the lattice."""
    return j <= most * i and 0 <= num_phones - j <= most * (num_letters - i)


@njit(cache=True, nogil=True)
def _slot(table: Int32Array, keys: Int64Array, key: Integer) -> Integer:
    """Where a key stands in an open-addressing table of indices into `keys`, or could be put."""
    mask = table.shape[0] - 1
    at = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    while table[at] >= 0 and keys[table[at]] != key:
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def number_arcs(
    letters: Int32Array, first_letter: Int64Array, phones: Int32Array, first_phone: Int64Array, most: int, base: Integer
) -> tuple[Int64Array, Int32Array, Int64Array]:
    """(keys (G,) i8, graphone (A,) i4, first_arc (W + 1,) i8): the graphone of each arc of each word's lattice.

    letters, phones: ids of all words, one after the other; those of phones are from 1 to base - 1.  The key of a
    graphone is the number whose digits in `base` are the letter and `most` phones, 0 for none.  Graphones are numbered
    as they appear.
    """
    num_words = first_letter.shape[0] - 1
    first_arc = np.zeros(num_words + 1, np.int64)
    keys = np.empty(1 << 10, np.int64)
    num_keys = 0
    table = np.full(1 << 12, -1, np.int32)
    graphone = np.empty(0, np.int32)
    for counting in (True, False):
        if not counting:
            graphone = np.empty(first_arc[num_words], np.int32)
        arc = 0
        for w in range(num_words):
            a = first_letter[w]
            b = first_phone[w]
            num_letters = first_letter[w + 1] - a
            num_phones = first_phone[w + 1] - b
            for i in range(num_letters):
                for j in range(num_phones + 1):
                    if not _fits(i, j, num_letters, num_phones, most):
                        continue
                    for m in range(most + 1):
                        if not _fits(i + 1, j + m, num_letters, num_phones, most):
                            continue
                        if not counting:
                            key = np.int64(letters[a + i])
                            for n in range(most):
                                key = key * base + (phones[b + j + n] if n < m else 0)
                            at = _slot(table, keys, key)
                            if table[at] < 0 and num_keys == keys.shape[0]:
                                keys = np.concatenate((keys, np.empty(num_keys, np.int64)))
                                table = np.full(8 * num_keys, -1, np.int32)
                                for n in range(num_keys):
                                    table[_slot(table, keys, keys[n])] = n
                                at = _slot(table, keys, key)
                            if table[at] < 0:
                                keys[num_keys] = key
                                table[at] = num_keys
                                num_keys += 1
                            graphone[arc] = table[at]
                        arc += 1
            first_arc[w + 1] = arc
    return keys[:num_keys].copy(), graphone, first_arc


@njit(cache=True, nogil=True)
def expect(
    lengths: Int64Array,
    begin: int,
    end: int,
    graphone: Int32Array,
    first_arc: Int64Array,
    most: int,
    probability: Float64Array,
    growth: float,
    counts: Float64Array,
) -> float:
    """Add the expected counts of the graphones in words begin .. end - 1 to counts (G,); return the sum of ln P(word).

    lengths (W, 2): letters and phones.  Each letter multiplies the probability of a path by `growth`, which keeps sums
    in the range of float64 and cancels in the counts.  A word of probability 0 adds -inf and no counts.
    """
    total = 0.0
    largest_i = largest_j = 0
    for w in range(begin, end):
        largest_i = max(largest_i, lengths[w, 0])
        largest_j = max(largest_j, lengths[w, 1])
    forward = np.zeros((largest_i + 1, largest_j + 1))
    backward = np.zeros((largest_i + 1, largest_j + 1))
    for w in range(begin, end):
        num_letters = lengths[w, 0]
        num_phones = lengths[w, 1]
        forward[: num_letters + 1, : num_phones + 1] = 0.0
        backward[: num_letters + 1, : num_phones + 1] = 0.0
        forward[0, 0] = backward[num_letters, num_phones] = 1.0
        arc = first_arc[w]
        for i in range(num_letters):
            for j in range(num_phones + 1):
                if not _fits(i, j, num_letters, num_phones, most):
                    continue
                for m in range(most + 1):
                    if _fits(i + 1, j + m, num_letters, num_phones, most):
                        forward[i + 1, j + m] += forward[i, j] * probability[graphone[arc]] * growth
                        arc += 1
        likelihood = forward[num_letters, num_phones]
        if not 0.0 < likelihood < np.inf:
            total = -np.inf
            continue
        total += np.log(likelihood) - num_letters * np.log(growth)
        for i in range(num_letters - 1, -1, -1):
            for j in range(num_phones, -1, -1):
                if not _fits(i, j, num_letters, num_phones, most):
                    continue
                for m in range(most, -1, -1):
                    if _fits(i + 1, j + m, num_letters, num_phones, most):
                        arc -= 1
                        after = probability[graphone[arc]] * growth * backward[i + 1, j + m]
                        backward[i, j] += after
                        counts[graphone[arc]] += forward[i, j] * after / likelihood
    return total


@njit(cache=True, nogil=True)
def best_paths(
    lengths: Int64Array,
    graphone: Int32Array,
    first_arc: Int64Array,
    most: int,
    cost: Float64Array,
    first_letter: Int64Array,
    path: Int32Array,
) -> None:
    """Fill path (letters,) i4 with the graphone of each letter on the cheapest path of each word; -1 without a path."""
    best = np.empty((lengths[:, 0].max() + 1, lengths[:, 1].max() + 1))
    last = np.empty(best.shape, np.int64)  # the arc that leads to the node on its best path
    for w in range(lengths.shape[0]):
        num_letters = lengths[w, 0]
        num_phones = lengths[w, 1]
        best[: num_letters + 1, : num_phones + 1] = np.inf
        best[0, 0] = 0.0
        arc = first_arc[w]
        for i in range(num_letters):
            for j in range(num_phones + 1):
                if not _fits(i, j, num_letters, num_phones, most):
                    continue
                for m in range(most + 1):
                    if not _fits(i + 1, j + m, num_letters, num_phones, most):
                        continue
                    through = best[i, j] + cost[graphone[arc]]
                    if through < best[i + 1, j + m]:
                        best[i + 1, j + m] = through
                        last[i + 1, j + m] = arc * (most + 1) + m
                    arc += 1
        j = num_phones
        has_path = best[num_letters, num_phones] < np.inf
        for i in range(num_letters, 0, -1):
            if has_path:
                path[first_letter[w] + i - 1] = graphone[last[i, j] // (most + 1)]
                j -= last[i, j] % (most + 1)
            else:
                path[first_letter[w] + i - 1] = -1
