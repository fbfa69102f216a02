"""Lattices as OpenFst reads them: every path with its cost, in text and in binary form."""

from dataclasses import replace

import kaldifst
import numpy as np
import pytest

from decoder.graph.openfst import from_openfst
from decoder.lattices.links import weigh
from decoder.lattices.openfst import check_words, lattice_acceptor, write_binary
from decoder.lattices.posteriors import best_path
from readers.errors import GraphError
from readers.kaldi.lattice import word_table
from readers.language.att import read_acceptor, write_acceptor
from readers.results.lattice import NULL_WORD
from tests.decoder.lattices.small_lattices import lattice_of, paths, random_lattice, spoken

SEEDS = range(30)


def walks(arrays, names):
    """(words, cost) of every path of arrays of arcs, sorted."""
    found, waiting = [], [(arrays.start, [], 0.0)]
    while waiting:
        state, words, cost = waiting.pop()
        if np.isfinite(arrays.final_cost[state]):
            found.append((words, cost + arrays.final_cost[state]))
        for arc in np.flatnonzero(arrays.source == state):
            label = int(arrays.label[arc])
            longer = [*words, names[label]] if label else words
            waiting.append((int(arrays.target[arc]), longer, cost + float(arrays.cost[arc])))
    return sorted(found, key=lambda one: (one[0], one[1]))


def expected_walks(lattice):
    found = [(spoken(lattice, path), -score) for path, score in paths(lattice)]
    return sorted(found, key=lambda one: (one[0], one[1]))


def check(found, expected):
    assert [words for words, _ in found] == [words for words, _ in expected]
    assert [cost for _, cost in found] == pytest.approx([cost for _, cost in expected], abs=1e-5)


def walks_of(acceptor):
    return list(zip(acceptor.source.tolist(), acceptor.target.tolist()))


@pytest.mark.parametrize("seed", SEEDS)
def test_openfst_compiles_the_text_to_the_lattices_paths(seed, tmp_path):
    lattice = random_lattice(seed)
    acceptor = lattice_acceptor(lattice)
    write_acceptor(tmp_path / "a.txt", acceptor)
    words = word_table(acceptor.symbols)
    (tmp_path / "words.txt").write_text("".join(f"{word}\t{number}\n" for number, word in enumerate(words)))
    table = kaldifst.SymbolTable.read_text(str(tmp_path / "words.txt"))
    fst = kaldifst.compile((tmp_path / "a.txt").read_text(), acceptor=True, isymbols=table)
    check(walks(from_openfst(fst), list(words)), expected_walks(lattice))
    again = read_acceptor(tmp_path / "a.txt")
    assert again.start == 0
    assert (again.num_arcs, again.num_states) == (lattice.num_links, lattice.num_nodes)


@pytest.mark.parametrize("seed", SEEDS)
def test_openfst_reads_the_binary_form(seed, tmp_path):
    lattice = random_lattice(seed)
    words = {"<eps>": 0, "c": 7, "b": 3, "a": 12}  # numbers with gaps, as a part of a larger table has
    write_binary(tmp_path / "a.fst", lattice_acceptor(lattice), words)
    fst = kaldifst.StdVectorFst.read(str(tmp_path / "a.fst"))
    check(walks(from_openfst(fst), {number: word for word, number in words.items()}), expected_walks(lattice))
    best = from_openfst(kaldifst.shortest_path(fst))
    path = best_path(weigh(lattice))
    assert sum(best.cost) + min(best.final_cost) == pytest.approx(-weigh(lattice).total[path].sum(), abs=1e-5)


def test_links_of_probability_zero_are_left_out():
    lattice = lattice_of([(0, 1, "a", -1, 0), (0, 1, "b", -np.inf, 0)], scales={})
    assert lattice_acceptor(lattice).symbols == ["<eps>", "a"]
    dead_end = lattice_of([(0, 2, "a", -1, 0), (0, 1, "b", -1, 0), (1, 2, "c", -np.inf, 0)], scales={})
    assert walks_of(lattice_acceptor(dead_end)) == [(0, 1)]
    with pytest.raises(GraphError, match="lattice: no path from start to end"):
        lattice_acceptor(lattice_of([(0, 1, "a", -1, 0), (1, 2, "b", -np.inf, 0)], scales={}))


@pytest.mark.parametrize(
    ("links", "fault"),
    [
        ([(0, 1, "a", 0, 0), (1, 2, "b", 0, 0), (2, 1, "c", 0, 0), (2, 3, "d", 0, 0)], "lattice: has a loop"),
        ([(0, 2, "a", 0, 0), (1, 2, "b", 0, 0)], "2 start nodes"),
        ([(0, 1, NULL_WORD, np.nan, 0)], "link 0 scores nan"),
    ],
)
def test_lattices_without_an_acceptor(links, fault):
    with pytest.raises(GraphError, match=fault):
        lattice_acceptor(lattice_of(links, scales={}))


def test_messages_name_the_file_else_the_utterance():
    lattice = lattice_of([(0, 2, "a", 0, 0), (1, 2, "b", 0, 0)], utterance="u7")
    with pytest.raises(GraphError, match=r"^lattice u7: 2 start nodes"):
        weigh(lattice)
    with pytest.raises(GraphError, match=r"^x/test7\.lat: 2 start nodes"):
        weigh(replace(lattice, path="x/test7.lat"))


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ({"<eps>": 0, "a": 1}, "table: b has no number; expected one in the table of words"),
        ({"a": 1, "b": 2}, "table: <eps> is not in the table; expected 0"),
        ({"<eps>": 3, "a": 1, "b": 2}, "table: <eps> is 3; expected 0"),
    ],
)
def test_tables_that_do_not_fit(words, fault):
    acceptor = lattice_acceptor(lattice_of([(0, 1, "a", -1, 0), (0, 1, "b", -2, 0)]))
    with pytest.raises(GraphError, match=fault):
        check_words(acceptor, words, "table")
