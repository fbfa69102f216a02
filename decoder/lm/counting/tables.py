"""Counts of n-grams, in parts of a text that can be counted in other processes and on other machines.

The counts of an order are a table of its n-grams, each given by the number of its first words in the table of the order
below, and its last word.  Tables of parts are merged by sorting, so memory holds the different n-grams, not the text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
from readers.common.faults import listed
from readers.errors import GraphError

if TYPE_CHECKING:
    from decoder.lm.counting.runs import SortedRuns

START_ID, END_ID = 0, 1
MARKS = (SENTENCE_START, SENTENCE_END)
WORD_BITS = 32  # of a key, which has the number of the first words above


@dataclass(frozen=True)
class NgramCounts:
    """The n n-grams of one order k in a text, sorted by prefix, then word.

    words (n, k) i4: vocabulary ids; prefix, suffix (n,): indices of the (k-1)-grams without the last and without the
    first word (0 for k = 1, the empty one); count (n,): occurrences; preceded (n,): number of distinct preceding words.
    """

    words: np.ndarray
    prefix: np.ndarray
    suffix: np.ndarray
    count: np.ndarray
    preceded: np.ndarray


class NgramTable(NamedTuple):
    """The n-grams of one order, sorted: prefix (n,), row in the table below; word (n,) ids; count (n,); integers."""

    prefix: np.ndarray
    word: np.ndarray
    count: np.ndarray  # type: ignore[assignment]  # the method of tuples is not used


class PartCounts(NamedTuple):
    """The n-grams of a part of a text.

    words: the different words without <s> and </s>, in the order of their first occurrence; word i has the id i + 2.
    sentences: their number.  tables: one of each order.
    """

    words: list[str]
    sentences: int
    tables: list[NgramTable]


class _Ids(dict[str, int]):
    """word -> id, which a new word gets when it is looked up."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


def count_part(sentences: Iterable[Sequence[str]], order: int) -> PartCounts:
    """Count the n-grams of sentences, of orders 1 to `order`, with <s> and </s> at the ends of each sentence.

    Parameters
    ----------
    sentences : iterable of sequence of str
        Without <s> and </s>.
    order : int

    Returns
    -------
    PartCounts
    """
    ids = _Ids({SENTENCE_START: START_ID, SENTENCE_END: END_ID})
    tokens: list[int] = []
    lengths: list[int] = []
    id_of = ids.__getitem__
    for words in sentences:
        tokens.append(START_ID)
        tokens.extend(map(id_of, words))
        tokens.append(END_ID)
        lengths.append(len(words) + 2)
    tables = _count(np.array(tokens, np.int32), np.array(lengths, np.int64), order)
    return PartCounts(list(ids)[2:], len(lengths), tables)


def _count(tokens: np.ndarray, lengths: np.ndarray, order: int) -> list[NgramTable]:
    """Tables of the n-grams of sentences.  An order longer than any sentence is empty."""
    remaining = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(tokens))  # tokens from here to the end
    begin = np.arange(len(tokens))  # first tokens of the n-grams of this order
    prefix = np.zeros(len(tokens), np.int64)  # number of the (k-1)-gram that begins at each of them
    tables = []
    for k in range(1, order + 1):
        long_enough = remaining[begin] >= k
        begin = begin[long_enough]
        prefix = prefix[long_enough]
        table, prefix = _table(prefix, tokens[begin + k - 1], None)
        tables.append(table)
    return tables


def _table(prefix: np.ndarray, word: np.ndarray, count: np.ndarray | None) -> tuple[NgramTable, np.ndarray]:
    """The table of n-grams, which may be repeated, and the row of each of them; count: of each, 1 if None."""
    return sorted_table(prefix.astype(np.int64) << WORD_BITS | word, count)


def sorted_table(keys: np.ndarray, count: np.ndarray | None) -> tuple[NgramTable, np.ndarray]:
    """Return what `_table` does, given the keys: the row of the prefix above WORD_BITS bits, the word below."""
    order = np.argsort(keys)
    keys = keys[order]
    is_first = np.ones(len(keys), bool)
    is_first[1:] = keys[1:] != keys[:-1]
    first = np.flatnonzero(is_first)
    rows = np.empty(len(keys), np.int64)
    rows[order] = np.cumsum(is_first) - 1
    if count is None:
        total = np.diff(first, append=len(keys))
    else:
        total = np.add.reduceat(count[order], first) if len(first) else np.zeros(0, np.int64)
    keys = keys[first]
    word = (keys & ((1 << WORD_BITS) - 1)).astype(np.int32)
    return NgramTable((keys >> WORD_BITS).astype(np.int32), word, total.astype(np.int64)), rows


def merged(parts: Sequence[tuple[Sequence[NgramTable], np.ndarray]]) -> list[NgramTable]:
    """Add tables up, of which each comes with the new ids of its words; several words may have the same new id."""
    rows = [np.zeros(1, np.int64) for _ in parts]  # of each part's (k-1)-grams in the merged table
    bounds: list[int] = []
    result = []
    for level in zip(*(tables for tables, _ in parts), strict=True):
        prefix = np.concatenate([row[table.prefix] for row, table in zip(rows, level)])
        word = np.concatenate([ids[table.word] for (_, ids), table in zip(parts, level)])
        table, where = _table(prefix, word, np.concatenate([table.count for table in level]))
        bounds = np.cumsum([len(table.word) for table in level])[:-1].tolist()
        rows = np.split(where, bounds)
        result.append(table)
    return result


class NgramCounter:
    """Adds up the counts of the parts of a text.

    The result does not depend on how the text was divided.

    Parameters
    ----------
    order : int
        The longest n-grams.
    vocabulary : iterable of str, optional
        The words that are counted.  By default all.
    unknown : str, optional
        A word that stands for all words outside the vocabulary, and is added to it.
    runs : SortedRuns, optional
        Where to put tables that are larger than `most`.
    most : int
        Number of n-grams that are in memory at once, beside those of a part.

    Attributes
    ----------
    num_sentences : int
    missing : list of str
        Words outside the vocabulary, if nothing stands for them, in the order of their first occurrence.
    """

    def __init__(
        self,
        order: int,
        vocabulary: Iterable[str] | None = None,
        unknown: str | None = None,
        runs: "SortedRuns | None" = None,
        most: int = 0,
    ):
        self.num_sentences = 0
        self.missing: list[str] = []
        self._is_open = vocabulary is None
        self._unknown = unknown
        marks = [*MARKS, unknown] if unknown else [*MARKS]
        self._ids = {word: i for i, word in enumerate(dict.fromkeys([*marks, *(vocabulary or ())]))}
        empty = np.zeros(0, np.int32)
        self._empty = [NgramTable(empty, empty, np.zeros(0, np.int64))] * order
        self._tables = self._empty
        self._runs = runs
        self._most = most
        self._waiting: list[tuple[list[NgramTable], np.ndarray]] = []
        self._missing: set[str] = set()

    def add(self, part: PartCounts) -> None:
        """Add the counts of a part of the text."""
        self.num_sentences += part.sentences
        if self._is_open:
            ids = [self._ids.setdefault(word, len(self._ids)) for word in part.words]
        else:
            unknown_id = -1 if self._unknown is None else self._ids.get(self._unknown, -1)
            ids = [self._ids.get(word, unknown_id) for word in part.words]
            if -1 in ids:
                new = [word for word, i in zip(part.words, ids) if i < 0 and word not in self._missing]
                self.missing += new
                self._missing.update(new)
        if self.missing:  # the text will be refused
            return
        self._waiting.append((part.tables, np.array([START_ID, END_ID, *ids], np.int64)))
        waiting, merged_before = _size(tables for tables, _ in self._waiting), _size([self._tables])
        is_full = self._runs is not None and waiting + merged_before > self._most
        if waiting > merged_before or is_full:
            self._merge()
        if self._runs is not None and is_full:
            self._runs.add(self._tables)
            self._tables = self._empty

    def _merge(self, new_ids: np.ndarray | None = None) -> None:
        """Merge what waits; its size is that of the result at least, so that an n-gram is seldom sorted again.

        place: new ids of all words.
        """
        new_ids = np.arange(len(self._ids)) if new_ids is None else new_ids
        everything = [(self._tables, new_ids), *((tables, new_ids[ids]) for tables, ids in self._waiting)]
        self._waiting = []
        self._tables = merged(everything)

    def result(self) -> tuple[list[str], list[NgramCounts]]:
        """Return the vocabulary and the counts of each order, as `tables` does, with what an estimate needs.

        Raises
        ------
        GraphError
            As `tables`.
        """
        words, tables = self.tables()
        return words, complete(tables)

    def tables(self) -> tuple[list[str], list[NgramTable]]:
        """Return the vocabulary, with <s> and </s> first, and a table for each order; the counter is then empty.

        Without a given vocabulary it is sorted.  Tables from the disk are there as long as their SortedRuns.

        Raises
        ------
        GraphError
            If there were no sentences, or words outside the vocabulary.
        """
        if not self.num_sentences:
            raise GraphError("language model: the text has no sentences; expected at least one")
        if self.missing:
            raise GraphError(
                f"language model: words outside the vocabulary: {listed(self.missing)}; expected every "
                "word of the text in the vocabulary, or a name for unknown words"
            )
        words = list(self._ids)
        new_ids = None
        if self._is_open:
            fixed = len(MARKS) + bool(self._unknown)
            words = [*words[:fixed], *sorted(words[fixed:])]
            new = {word: i for i, word in enumerate(words)}
            new_ids = np.array([new[word] for word in self._ids])
        if self._runs:
            self._merge()
            self._runs.add(self._tables)
            tables = self._runs.merge(np.arange(len(words)) if new_ids is None else new_ids)
        else:
            if self._is_open or self._waiting:
                self._merge(new_ids)
            tables = self._tables
        self._tables = []
        return words, tables


def _size(parts: Iterable[Sequence[NgramTable]]) -> int:
    return sum(len(table.word) for tables in parts for table in tables)


def complete(tables: Sequence[NgramTable]) -> list[NgramCounts]:
    """Add words, suffixes and the numbers of preceding words to merged tables."""
    words = np.zeros((1, 0), np.int32)
    suffix = np.zeros(1, np.int64)
    keys = np.zeros(1, np.int64)  # of the order below
    result: list[NgramCounts] = []
    for prefix, word, count in tables:
        words = np.column_stack([words[prefix], word])
        above = suffix[prefix] << WORD_BITS | word if result else np.zeros(len(word), np.int64)
        suffix = np.searchsorted(keys, above)
        if result:
            result[-1].preceded[:] = np.bincount(suffix, minlength=len(result[-1].count))
        result.append(NgramCounts(words, prefix, suffix, count, np.zeros_like(count)))
        keys = prefix.astype(np.int64) << WORD_BITS | word
    return result
