"""Files of n-gram counts: the tables of all orders as mapped arrays, and the vocabulary."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from decoder.lm.counting.tables import MARKS, NgramTable, PartCounts
from decoder.storage.array_checks import check_range
from decoder.storage.mapped_file import MappedFormat, NameList, check_lengths, pack_names
from readers.common.report import Figures
from readers.errors import FormatError

_TYPES = {"vocabulary": "|u1", "sentences": "<i8", "size": "<i8", "prefix": "<i4", "word": "<i4", "count": "<i8"}
FORMAT = MappedFormat(b"ARGONGC\n", 1, _TYPES, "file of n-gram counts", "`argonaut lm counts` makes one")


def write_counts(path: str | Path, words: Sequence[str], num_sentences: int, tables: Sequence[NgramTable]) -> None:
    """Write the tables of all orders; words: the vocabulary, with <s> and </s> first."""
    prefix, word, count = (np.concatenate(level) for level in zip(*tables))
    sections = {
        "vocabulary": pack_names(words, path),
        "sentences": np.array([num_sentences], np.int64),
        "size": np.array([len(table.word) for table in tables], np.int64),
        "prefix": prefix,
        "word": word,
        "count": count,
    }
    FORMAT.write(path, len(tables), sections)


def read_counts(path: str | Path, order: int | None = None) -> PartCounts:
    """Map the counts of orders 1 to `order`, by default all, into memory.

    Raises FormatError for a damaged file, and for one of a lower order.
    """
    highest, sections = FORMAT.read(path)
    order = highest if order is None else order
    if order > highest:
        raise FormatError(f"{path}: counts of n-grams up to order {highest}; expected up to {order}")
    lengths = {name: len(sections[name]) for name in ("prefix", "word", "count")}
    check_lengths(lengths, (("prefix", "word", "count"),), path)
    sizes = sections["size"].tolist()
    if len(sizes) != highest or min(sizes, default=0) < 0 or sum(sizes) != lengths["word"]:
        raise FormatError(f"{path}: orders of {sizes} n-grams; expected {highest} orders, in all {lengths['word']}")
    words = list(NameList(sections["vocabulary"], "words", path))
    if tuple(words[:2]) != MARKS or len(sections["sentences"]) != 1:
        raise FormatError(f"{path}: no <s> and </s> before the words, or no number of sentences; expected both")
    check_range(sections["word"], len(words), "word", path)
    tables = []
    begin, below = 0, 1
    for size in sizes[:order]:
        part = slice(begin, begin + size)
        tables.append(NgramTable(*(sections[name][part] for name in NgramTable._fields)))
        check_range(tables[-1].prefix, below, "prefix", path)
        begin, below = begin + size, size
    return PartCounts(words[2:], int(sections["sentences"][0]), tables)


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    counts = read_counts(path)
    figures: Figures = [("sentences", counts.sentences), ("words", len(counts.words))]
    return [*figures, *((f"{k}-grams", len(table.word)) for k, table in enumerate(counts.tables, 1))]
