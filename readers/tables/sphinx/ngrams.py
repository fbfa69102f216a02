"""N-gram models of CMU Sphinx in binary form: the trie of sphinxbase 5, and the older dump (DMP).

The trie begins with the last word of an n-gram and goes back in time.  A level has packed bits: for each n-gram its
earliest word, places in tables of 65,536 back-off weights and probabilities, and where its longer n-grams begin; one
more entry ends the last of them.  Numbers of the trie are logarithms to the base 1.0001, those of the dump log10.
Source: sphinxbase, src/libsphinxbase/lm: lm_trie.c, lm_trie_quant.c, ngram_model_trie.c, ngrams_raw.c.
"""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from readers.common.arrays import ByteArray, Float64Array, Int32Array, Int64Array
from readers.common.text import canonical
from readers.tables.sphinx.binary_file import BinaryFile
from readers.tables.sphinx.parameters import LOG_BASE

TRIE = b"Trie Language Model"
DUMP = b"Darpa Trigram LM\0"
MAX_ORDER = 5
TABLE_BITS = 16
SEGMENT_BITS = 9  # of the bigrams of a dump, whose trigrams are counted from the beginning of a segment
MAX_LOG10_PROBABILITY = 1e-3  # rounding may leave a probability just above 1
LEAST_LOG10 = -99.0  # of a word that never occurs, and of empty entries of the tables, which are -2e9


class NgramColumns(NamedTuple):
    """The n n-grams of order k.

    Attributes
    ----------
    words : (n, k) int32
        Indices into the vocabulary, oldest word first.
    logprob, backoff : (n,) float64
        log10; a back-off weight is 0 if the file has none.
    """

    words: Int32Array
    logprob: Float64Array
    backoff: Float64Array


def is_ngram_model(path: str | Path) -> bool:
    """Return whether a file begins like a binary n-gram model of Sphinx.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    bool
    """
    with Path(path).open("rb") as file:
        begin = file.read(4 + len(DUMP))
    return begin.startswith(TRIE) or begin[4:] == DUMP


def read_ngrams(path: str | Path) -> tuple[list[str], list[NgramColumns]]:
    """Read a binary n-gram model.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    vocabulary : list of str
        Words in the order of the unigrams.
    orders : list of NgramColumns
        orders[k-1] holds the n-grams of order k.

    Raises
    ------
    FormatError
        For a damaged file.
    OSError
    """
    content = Path(path).read_bytes()
    file = BinaryFile(path, content)
    orders = _read_trie(file) if content.startswith(TRIE) else _read_dump(file)
    names = file.take(file.integer("size of the words"), "words").split(b"\0")
    num_words = len(orders[0].logprob)
    if len(names) != num_words + 1 or names[-1]:
        raise file.fault(f"{len(names) - 1} words", f"{num_words}, each with a byte 0 at its end")
    file.finish()
    try:
        vocabulary = [canonical(name.decode()) for name in names[:-1]]
    except UnicodeDecodeError:
        raise file.fault("a word that is not UTF-8", "UTF-8") from None
    if len(set(vocabulary)) < num_words or not all(vocabulary):
        raise file.fault("a word that is empty or listed twice", "each word once")
    for order in orders:
        highest = order.logprob.max(initial=-math.inf)
        if highest > MAX_LOG10_PROBABILITY:
            raise file.fault(f"log10 probability {highest:g}", "at most 0")
        np.clip(order.logprob, LEAST_LOG10, 0, out=order.logprob)
        np.maximum(order.backoff, LEAST_LOG10, out=order.backoff)
    return vocabulary, orders


def _read_trie(file: BinaryFile) -> list[NgramColumns]:
    file.take(len(TRIE), "the title")
    num_orders = file.take(1, "the order")[0]
    if not 1 <= num_orders <= MAX_ORDER:
        raise file.fault(f"order {num_orders}", f"1 to {MAX_ORDER}")
    counts = file.integers(num_orders, "number of n-grams", 1)
    scale = math.log10(LOG_BASE)
    tables = np.empty((0, 1 << TABLE_BITS))
    if num_orders > 1:
        file.take(4, "the kind of the tables")
        num_tables = 2 * num_orders - 3
        tables = scale * file.floats(num_tables << TABLE_BITS, "tables").astype(np.float64).reshape(num_tables, -1)
    unigrams = file.array("u4", 3 * (counts[0] + 1), "unigrams").reshape(-1, 3)
    weights = scale * _as_floats(file, unigrams[:-1, :2])
    words = np.arange(counts[0], dtype=np.int32)[:, None]
    orders = [NgramColumns(words, weights[:, 0].copy(), weights[:, 1].copy())]
    bounds = unigrams[:, 2].astype(np.int64)
    word_bits = counts[0].bit_length()
    for order, count in enumerate(counts[1:], start=2):
        is_longest = order == num_orders
        next_bits = 0 if is_longest else counts[order].bit_length()
        weight_bits = TABLE_BITS if is_longest else 2 * TABLE_BITS
        size = ((count + 1) * (word_bits + weight_bits + next_bits) + 7) // 8 + 8
        packed = np.frombuffer(file.take(size, f"{order}-grams"), np.uint8)
        num_used = int(bounds[-1])  # the counts of en-us.lm.bin are a little too large; empty entries fill its levels
        if not 1 <= num_used <= count:
            raise file.fault(f"{num_used} {order}-grams in use", f"1 to {count}")
        begins = np.arange(num_used + 1) * (word_bits + weight_bits + next_bits)
        earliest = _bits(packed, begins[:-1], word_bits)
        words = _with_word(file, earliest, words[_parents(file, bounds, num_used)], counts[0], first=True)
        begins += word_bits
        backoff = np.zeros(num_used)
        if not is_longest:
            backoff = tables[2 * order - 3][_bits(packed, begins[:-1], TABLE_BITS)]
            begins += TABLE_BITS
        orders.append(NgramColumns(words, tables[2 * order - 4][_bits(packed, begins[:-1], TABLE_BITS)], backoff))
        bounds = _bits(packed, begins + TABLE_BITS, next_bits)
    return orders


def _read_dump(file: BinaryFile) -> list[NgramColumns]:
    file.order = "<" if file.content[:4] == len(DUMP).to_bytes(4, "little") else ">"
    if file.integer("length of the title") != len(DUMP) or file.take(len(DUMP), "the title") != DUMP:
        raise file.fault(repr(file.content[:24]), f"{TRIE.decode()} or {DUMP[:-1].decode()}")
    file.take(file.integer("length of a name"), "a name")
    num_words = int(file.array("i4", 1, "version")[0])
    if num_words <= 0:  # a version, which the oldest files lack
        file.take(4, "time")
        while size := file.integer("length of a text"):
            file.take(size, "a text")
        num_words = file.integer("number of words", 1)
    num_bigrams, num_trigrams = file.integers(2, "number of n-grams")
    if num_trigrams and not num_bigrams:
        raise file.fault(f"{num_trigrams} trigrams without bigrams", "their histories")
    unigrams = file.array("u4", 4 * (num_words + 1), "unigrams").reshape(-1, 4)
    weights = _as_floats(file, unigrams[:-1, 1:3])
    words = np.arange(num_words, dtype=np.int32)[:, None]
    orders = [NgramColumns(words, weights[:, 0].copy(), weights[:, 1].copy())]
    if not num_bigrams:
        return orders
    bigrams = file.array("u2", 4 * (num_bigrams + 1), "bigrams").reshape(-1, 4).astype(np.int64)
    trigrams = file.array("u2", 2 * num_trigrams, "trigrams").reshape(-1, 2).astype(np.int64)
    pairs = words[_parents(file, unigrams[:, 3].astype(np.int64), num_bigrams)]
    pairs = _with_word(file, bigrams[:-1, 0], pairs, num_words)
    logprob = _looked_up(file, bigrams[:-1, 1])
    backoff = _looked_up(file, bigrams[:-1, 2]) if num_trigrams else np.zeros(num_bigrams)
    orders.append(NgramColumns(pairs, logprob, backoff))
    if num_trigrams:
        logprob = _looked_up(file, trigrams[:, 1])
        segments = file.array("i4", file.integer("number of segments"), "segments").astype(np.int64)
        places = np.arange(num_bigrams + 1) >> SEGMENT_BITS
        if len(segments) <= places[-1]:
            raise file.fault(f"{len(segments)} segments of bigrams", f"{places[-1] + 1}")
        parents = _parents(file, segments[places] + bigrams[:, 3], num_trigrams)
        triples = _with_word(file, trigrams[:, 0], pairs[parents], num_words)
        orders.append(NgramColumns(triples, logprob, np.zeros(num_trigrams)))
    return orders


def _as_floats(file: BinaryFile, words: np.ndarray) -> Float64Array:
    """Return 32-bit words as the float32 numbers that they are.  Raises FormatError for one that is not finite."""
    values = np.ascontiguousarray(words).view(f"{file.order}f4")
    if not np.isfinite(values).all():
        raise file.fault("unigrams with a number that is infinite or NaN", "finite numbers")
    return values.astype(np.float64)


def _looked_up(file: BinaryFile, places: Int64Array) -> Float64Array:
    """Read a table of numbers and return those at some places."""
    table = file.floats(file.integer("size of a table"), "a table").astype(np.float64)
    if places.max() >= len(table):
        raise file.fault(f"place {places.max()} in a table of {len(table)} numbers", "places inside")
    return table[places]


def _parents(file: BinaryFile, bounds: Int64Array, count: int) -> Int64Array:
    """Return the shorter n-gram of each of `count`; those of n-gram i are bounds[i] .. bounds[i + 1] - 1."""
    sizes = np.diff(bounds)
    if bounds[0] != 0 or bounds[-1] != count or np.any(sizes < 0):
        raise file.fault(f"n-grams from {bounds[0]} to {bounds[-1]}", f"ascending places from 0 to {count}")
    return np.repeat(np.arange(len(sizes)), sizes)


def _with_word(
    file: BinaryFile, added: Int64Array, words: Int32Array, num_words: int, first: bool = False
) -> Int32Array:
    """Return n-grams with another word, the last or the first.  Raises FormatError for one out of range."""
    if added.max() >= num_words:
        raise file.fault(f"word {added.max()}", f"0 to {num_words - 1}")
    column = added[:, None].astype(np.int32)
    return np.hstack([column, words] if first else [words, column])


def _bits(packed: ByteArray, begins: Int64Array, width: int) -> Int64Array:
    """Return numbers of up to 32 bits that begin at some bits, the lowest bit first; 8 bytes follow the last."""
    values = np.zeros(len(begins), np.int64)
    for byte in range(5):
        values |= packed[(begins >> 3) + byte].astype(np.int64) << (8 * byte)
    return (values >> (begins & 7)) & ((1 << width) - 1)
