"""Lattices as word acceptors for OpenFst: text for `fstcompile --acceptor`, or the binary format.

The cost of a path is minus its score, with all scales and the word penalty.  Links without a word are epsilons; the
start is state 0, and the states are in topological order.
"""

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from decoder.lattices.links import weigh
from readers.common.files import write_content
from readers.errors import GraphError
from readers.language.att import EPSILON, Acceptor
from readers.language.openfst import vector_fst
from readers.results.lattice import NULL_WORD, Lattice


def lattice_acceptor(lattice: Lattice) -> Acceptor:
    """The acceptor of a lattice's words, arcs sorted by source; costs are float32, as in OpenFst.

    Links that are on no path of a probability above zero have no arc.  Raises GraphError for a
    lattice with a loop, with more than one start or end, and for scores that are not numbers.
    """
    links = weigh(lattice)
    order = lattice.in_order[links.possible[lattice.in_order]]
    used = np.zeros(lattice.num_nodes, bool)
    used[[*lattice.start[order], links.last]] = True
    number = np.empty(lattice.num_nodes, np.int32)
    number[lattice.order] = np.cumsum(used[lattice.order]) - 1
    words = [EPSILON if lattice.word[link] == NULL_WORD else lattice.word[link] for link in order.tolist()]
    symbols = list(dict.fromkeys([EPSILON, *words]))
    ids = {word: i for i, word in enumerate(symbols)}
    return Acceptor(
        source=number[lattice.start[order]],
        target=number[lattice.end[order]],
        label=np.array([ids[word] for word in words], np.int32),
        cost=(-links.total[order]).astype(np.float32),
        final=number[[links.last]],
        final_cost=np.zeros(1, np.float32),
        start=0,
        symbols=symbols,
    )


def check_words(acceptor: Acceptor, words: Mapping[str, int], where: str) -> None:
    """Raise GraphError for a word without a number, and unless the number of <eps> is 0."""
    if words.get(EPSILON) != 0:
        raise GraphError(f"{where}: {EPSILON} is {words.get(EPSILON, 'not in the table')}; expected 0, as in OpenFst")
    for word in acceptor.symbols:
        if word not in words:
            raise GraphError(f"{where}: {word} has no number; expected one in the table of words")


def write_binary(path: str | Path, acceptor: Acceptor, words: Mapping[str, int]) -> None:
    """Write OpenFst's binary format (type vector, arcs standard); words: the number of every word, 0 for <eps>."""
    check_words(acceptor, words, str(path))
    final = np.full(acceptor.num_states, np.inf, np.float32)
    final[acceptor.final] = acceptor.final_cost
    leaving: list[list[bytes]] = [[] for _ in range(acceptor.num_states)]
    label = np.array([words[word] for word in acceptor.symbols], np.int32)[acceptor.label]
    columns = (acceptor.source, label, acceptor.cost, acceptor.target)
    for source, number, cost, target in zip(*(column.tolist() for column in columns)):
        leaving[source].append(struct.pack("<iifi", number, number, cost, target))
    finals = [struct.pack("<f", cost) for cost in final.tolist()]
    write_content(path, vector_fst(b"standard", finals, leaving, acceptor.start))
