"""Lattices in Kaldi's text form (compact lattices, as `lattice-copy --write-compact ark:... ark,t:-` prints them).

A line with the utterance; lines `start end word graph,acoustic,alignment` of links, lines `node graph,acoustic,` of
nodes to end in; an empty line.  Words and the states of an alignment are numbers: tables say which.  Costs are minus
natural logs: acoustic without its scale, graph with all scales, so that Kaldi's programs see a path as the search did
with --acoustic-scale equal to the lattice's acscale.
"""

import math
import os
from collections.abc import Iterable, Mapping

import numpy as np

from readers.common.files import atomic_write
from readers.common.text import is_count, read_lines
from readers.errors import FormatError, GraphError
from readers.htk.slf import NULL_WORD, Lattice

EPSILON = "<eps>"
MOST_WORDS = 2**31 - 1  # a label of OpenFst has 32 bits


def write_kaldi_lattices(
    path: str | os.PathLike, lattices: Iterable[tuple[str, Lattice]], words: Mapping[str, int]
) -> None:
    """Write (utterance, lattice) pairs.

    words: number of every word; segments of links are not written: their states are no transitions of Kaldi's, and it
    takes links of any length without.  Raises GraphError for a word without a number and for a lattice with more than
    one node to start in, with a score that is not finite, or whose name has blanks.
    """
    with atomic_write(path, "w") as file:
        for name, lattice in lattices:
            file.write("".join([f"{name}\n", *_lines(name, lattice, words), "\n"]))


def _lines(name: str, lattice: Lattice, words: Mapping[str, int]) -> Iterable[str]:
    first = np.flatnonzero(np.bincount(lattice.end, minlength=lattice.num_nodes) == 0)
    if len(first) != 1:
        raise GraphError(f"lattice {name}: {len(first)} nodes to start in; expected one")
    if name.split() != [name]:
        raise GraphError(f"lattice {name!r}: has blanks in its name; expected none, for Kaldi ends names there")
    numbers = np.arange(lattice.num_nodes)  # Kaldi starts in node 0
    numbers[[0, first[0]]] = numbers[[first[0], 0]]
    penalty = lattice.scale("wdpenalty", 0.0)
    for link in np.argsort(numbers[lattice.start], kind="stable").tolist():
        word = lattice.word[link]
        if word != NULL_WORD and word not in words:
            raise GraphError(f"lattice {name}: {word} has no number; expected one in the table of words")
        graph = -lattice.scale("lmscale", 1.0) * float(lattice.lm[link]) - penalty * (word != NULL_WORD)
        if not math.isfinite(graph - float(lattice.acoustic[link])):
            raise GraphError(f"lattice {name}: link {link} has a score that is not finite; expected a number")
        start, end = numbers[lattice.start[link]], numbers[lattice.end[link]]
        yield f"{start}\t{end}\t{words.get(word, 0)}\t{graph:.9g},{-float(lattice.acoustic[link]):.9g},\n"
    for node in np.flatnonzero(np.bincount(lattice.start, minlength=lattice.num_nodes) == 0).tolist():
        yield f"{numbers[node]}\t0,0,\n"


def word_table(words: Iterable[str]) -> dict[str, int]:
    """A number for every word, in the order of words, from 1; 0 is for no word."""
    return {EPSILON: 0} | {word: n for n, word in enumerate(sorted(set(words) - {NULL_WORD, EPSILON}), 1)}


def write_word_table(path: str | os.PathLike, words: Mapping[str, int]) -> None:
    """Lines `word number`: Kaldi's words.txt."""
    with atomic_write(path, "w") as file:
        file.writelines(f"{word} {number}\n" for word, number in words.items())


def read_word_table(path: str | os.PathLike) -> dict[str, int]:
    """Read a words.txt.  Raises FormatError, with file and line."""
    words: dict[str, int] = {}
    taken: set[int] = set()
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split()
        if len(fields) != 2 or not is_count(fields[1]) or fields[0] in words or int(fields[1]) in taken:
            raise FormatError(f"{path}:{number}: {line[:60]!r}; expected `word number`, each word and number once")
        words[fields[0]] = label = int(fields[1])
        if label > MOST_WORDS:
            raise FormatError(f"{path}:{number}: number {label}; expected at most {MOST_WORDS}")
        taken.add(label)
    return words
