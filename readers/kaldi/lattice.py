"""Lattices in Kaldi's text format (compact lattices, as `lattice-copy --write-compact ark:... ark,t:-` prints them).

A lattice is a line with the utterance, lines `start end word graph,acoustic,alignment` for links, lines
`node graph,acoustic,` for final nodes, and an empty line.  Words and alignment states are numbers, which tables map.
Costs are negative natural logs: acoustic costs are not scaled, graph costs include all scales.  With --acoustic-scale
equal to the acscale of the lattice, Kaldi's programs rank paths as the search did.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from readers.common.files import atomic_write
from readers.common.text import is_count, read_lines
from readers.errors import FormatError, GraphError
from readers.htk.slf import NULL_WORD, Lattice
from readers.language.att import EPSILON

MOST_WORDS = 2**31 - 1  # labels of OpenFst have 32 bits


def write_kaldi_lattices(path: str | Path, lattices: Iterable[tuple[str, Lattice]], words: Mapping[str, int]) -> None:
    """Write lattices in Kaldi's compact text format.

    Parameters
    ----------
    path : path
        File to write.
    lattices : iterable of (str, Lattice)
        Utterance and lattice.  Segments of links are not written, because their states are not Kaldi transition ids;
        Kaldi accepts links of any length without an alignment.
    words : mapping of str to int
        Number of each word.

    Raises
    ------
    GraphError
        For a word without a number, and what `check_kaldi_lattice` raises.
    """
    with atomic_write(path, "w") as file:
        for name, lattice in lattices:
            file.write("".join([f"{name}\n", *_lines(name, lattice, words), "\n"]))


def _lines(name: str, lattice: Lattice, words: Mapping[str, int]) -> Iterable[str]:
    first, last = check_kaldi_lattice(name, lattice)
    numbers = np.arange(lattice.num_nodes)  # Kaldi's start node is 0
    numbers[[0, first]] = numbers[[first, 0]]
    penalty = lattice.scale("wdpenalty", 0.0)
    for link in np.argsort(numbers[lattice.start], kind="stable").tolist():
        word = lattice.word[link]
        if word != NULL_WORD and word not in words:
            raise GraphError(f"lattice {name}: {word} has no number; expected one in the table of words")
        graph = -lattice.scale("lmscale", 1.0) * float(lattice.lm[link]) - penalty * (word != NULL_WORD)
        start, end = numbers[lattice.start[link]], numbers[lattice.end[link]]
        yield f"{start}\t{end}\t{words.get(word, 0)}\t{graph:.9g},{-float(lattice.acoustic[link]):.9g},\n"
    yield f"{numbers[last]}\t0,0,\n"


def check_kaldi_lattice(name: str, lattice: Lattice) -> tuple[int, int]:
    """Raise an error unless Kaldi's format can hold a lattice.

    Parameters
    ----------
    name : str
        Its utterance.
    lattice : Lattice

    Returns
    -------
    (int, int)
        Start and end node.

    Raises
    ------
    GraphError
        For several start or end nodes, a score that is not finite, and blanks in the name.
    """
    firsts, lasts = (
        np.flatnonzero(np.bincount(nodes, minlength=lattice.num_nodes) == 0) for nodes in (lattice.end, lattice.start)
    )
    if len(firsts) != 1 or len(lasts) != 1:
        raise GraphError(f"lattice {name}: {len(firsts)} start nodes and {len(lasts)} end nodes; expected one of each")
    if name.split() != [name]:
        raise GraphError(f"lattice {name!r}: blank in the name; expected none, because Kaldi ends names there")
    with np.errstate(over="ignore", invalid="ignore"):
        odd = np.flatnonzero(~np.isfinite(lattice.scale("lmscale", 1.0) * lattice.lm + lattice.acoustic))
    if odd.size:
        raise GraphError(
            f"lattice {name}: link {odd[0]} has a score that is not finite; expected a number; `argonaut lattice "
            "determinise` leaves out links of probability zero"
        )
    return int(firsts[0]), int(lasts[0])


def word_table(words: Iterable[str]) -> dict[str, int]:
    """Number the words from 1, in alphabetical order; 0 is epsilon."""
    return {EPSILON: 0} | {word: n for n, word in enumerate(sorted(set(words) - {NULL_WORD, EPSILON}), 1)}


def write_word_table(path: str | Path, words: Mapping[str, int]) -> None:
    """Write a symbol table like Kaldi's words.txt.

    Parameters
    ----------
    path : path
        File to write, with lines `word number`.
    words : mapping of str to int
        Number of each word.
    """
    with atomic_write(path, "w") as file:
        file.writelines(f"{word} {number}\n" for word, number in words.items())


def read_word_table(path: str | Path) -> dict[str, int]:
    """Read a symbol table like Kaldi's words.txt.

    Parameters
    ----------
    path : path
        File with lines `word number`.

    Returns
    -------
    dict of str to int
        Number of each word.

    Raises
    ------
    FormatError
        With file and line, for a malformed line or a repeated word or number.
    """
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
