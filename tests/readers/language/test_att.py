"""Acceptors as AT&T text, and symbol tables."""

import dataclasses
import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.common.text import chunks
from readers.errors import FormatError, GraphError
from readers.language.att import Acceptor, read_acceptor, write_acceptor

TEXT = "3\t0\t[h#_s2]\t2.5\n0 1 h#\n\n1 0 [h#_s2] -1e-3\n5\n1\t0.25\n0 5 <eps>\n"


def put(path, text):
    path.write_text(text)
    return path


def columns(acceptor):
    return {
        field.name: value.tolist() if isinstance(value := getattr(acceptor, field.name), np.ndarray) else value
        for field in dataclasses.fields(acceptor)
    }


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("size", [1, 2, 50000])
def test_a_graph_written_by_hand(tmp_path, monkeypatch, compress, size):
    monkeypatch.setattr(chunks, "__defaults__", (size,))
    (tmp_path / "g").write_bytes(gzip.compress(TEXT.encode()) if compress else TEXT.encode())
    graph = read_acceptor(tmp_path / "g")
    assert columns(graph) == {
        "source": [3, 0, 1, 0],
        "target": [0, 1, 0, 5],
        "label": [1, 2, 1, 0],
        "cost": [2.5, 0.0, float(np.float32(-1e-3)), 0.0],
        "final": [5, 1],
        "final_cost": [0.0, 0.25],
        "start": 3,
        "symbols": ["<eps>", "[h#_s2]", "h#"],
    }
    assert (graph.num_arcs, graph.num_states) == (4, 6)
    assert {a.dtype for a in (graph.source, graph.target, graph.label, graph.final)} == {np.dtype(np.int32)}
    assert {a.dtype for a in (graph.cost, graph.final_cost)} == {np.dtype(np.float32)}


def test_a_graph_of_one_final_state(tmp_path):
    graph = read_acceptor(put(tmp_path / "g", "2 1.5\n"))
    assert (graph.start, graph.num_arcs, graph.num_states) == (2, 0, 3)
    assert (graph.final.tolist(), graph.final_cost.tolist()) == ([2], [1.5])


def test_large_numbers_of_few_states_do_not_ask_for_memory(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("2000000000 7 a 0.5\n7 2147483647 b\n2147483647 1\n")
    graph = read_acceptor(path)
    assert (graph.num_states, graph.start) == (3, 1)
    assert (graph.source.tolist(), graph.target.tolist(), graph.final.tolist()) == ([1, 0], [0, 2], [2])
    assert graph.source.dtype == graph.target.dtype == graph.final.dtype == np.int32


def test_infinite_costs_as_openfst_prints_them(tmp_path):
    assert read_acceptor(put(tmp_path / "g", "0 1 a Infinity\n1\n")).cost.tolist() == [np.inf]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "0 1 a b 2",
            r"g:2: '0 1 a b 2' has 5 fields; expected an acceptor's .*; a transducer must be projected first",
        ),
        ("x 1 a", r"g:2: state 'x' in 'x 1 a'; expected a whole number of 0 or more"),
        ("0 -1 a", r"g:2: state '-1' in '0 -1 a'; expected a whole number"),
        ("0 2147483648 a", r"g:2: state '2147483648' in .*; expected a whole number"),
        ("0 1 a b", r"g:2: cost 'b' in '0 1 a b'; expected a number"),
        ("0 1 a nan", r"g:2: cost 'nan' in '0 1 a nan'; expected a number"),
        ("0 1 a 1e300", r"g:2: cost '1e300' in '0 1 a 1e300'; expected a number of at most 1e\+30"),
        ("1 -1e300", r"g:2: cost '-1e300' in '1 -1e300'; expected a number of at most"),
        ("1 x", r"g:2: cost 'x' in '1 x'; expected a number"),
        ("x", r"g:2: state 'x' in 'x'; expected a whole number"),
        ("1\n1 2", r"g:3: state 1 is final twice; expected each once"),
    ],
)
@pytest.mark.parametrize("size", [1, 50000])
def test_malformed_lines_are_named(tmp_path, monkeypatch, line, message, size):
    monkeypatch.setattr(chunks, "__defaults__", (size,))
    with pytest.raises(FormatError, match=message):
        read_acceptor(put(tmp_path / "g", f"0 1 a\n{line}\n"))


def test_an_empty_file_is_named(tmp_path):
    with pytest.raises(FormatError, match=r"g: no arcs and no final state; expected lines"):
        read_acceptor(put(tmp_path / "g", "\n\n"))


def random_acceptor(seed, num_states, num_arcs, num_final):
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, num_states, (2, num_arcs), np.int32)
    final = rng.permutation(num_states)[: min(num_final, num_states)].astype(np.int32)
    costs = np.where(rng.random(num_arcs + len(final)) < 0.3, 0, rng.normal(size=num_arcs + len(final)))
    symbols = ["<eps>", "a", "[a_s2]", "[sil[2]]", "é"]
    start = int(source[rng.integers(num_arcs)] if num_arcs else final[-1])
    return Acceptor(
        source,
        target,
        rng.integers(0, len(symbols), num_arcs).astype(np.int32),
        costs[:num_arcs].astype(np.float32),
        final,
        costs[num_arcs:].astype(np.float32),
        start,
        symbols,
    )


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    num_states=st.integers(1, 8),
    num_arcs=st.integers(0, 12),
    num_final=st.integers(1, 4),
    compress=st.booleans(),
)
def test_what_is_written_is_read_back(tmp_path_factory, seed, num_states, num_arcs, num_final, compress):
    path = tmp_path_factory.mktemp("att") / ("g.gz" if compress else "g")
    graph = random_acceptor(seed, num_states, num_arcs, num_final)
    write_acceptor(path, graph)
    again = read_acceptor(path)
    assert again.start == graph.start

    # The line that tells the start state comes first; the order of the others is kept.
    def sorted_arcs(g):
        names = [g.symbols[label] for label in g.label]
        return sorted(zip(g.source.tolist(), g.target.tolist(), names, g.cost.tolist()))

    assert sorted_arcs(again) == sorted_arcs(graph)
    assert dict(zip(again.final.tolist(), again.final_cost.tolist())) == dict(
        zip(graph.final.tolist(), graph.final_cost.tolist())
    )


def test_arcs_keep_their_order_when_the_first_begins_at_the_start(tmp_path):
    graph = read_acceptor(put(tmp_path / "g", TEXT))
    write_acceptor(tmp_path / "h", graph)
    assert columns(read_acceptor(tmp_path / "h")) == columns(graph)


GRAPH = random_acceptor(0, 4, 6, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": GRAPH.target[:-1]}, r"acceptor: arrays of \[5, 6\] arcs; expected one length"),
        ({"final_cost": GRAPH.final_cost[:-1]}, r"acceptor: arrays of \[6\] arcs; expected one length"),
        ({"symbols": ["<eps>"]}, r"acceptor: label \d of 1 symbols; expected ids below that"),
        ({"source": GRAPH.source - 9}, r"acceptor: state -\d; expected 0 or more"),
        ({"symbols": ["<eps>", "a b", "c", "d", "e"]}, r"g: label 'a b' cannot be written; expected no blanks in it"),
        ({"start": 77}, r"g: start state 77 has no arcs and is not final; expected either"),
    ],
)
def test_acceptors_that_cannot_be_written(tmp_path, changes, message):
    with pytest.raises(GraphError, match=message):
        write_acceptor(tmp_path / "g", dataclasses.replace(GRAPH, **changes))
