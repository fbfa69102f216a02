"""Compiling acceptors: the arrays of the compiled graph, errors, and its file."""

import math
import os
import re
import struct

import numpy as np
import pytest

from decoder.graph.compiled_graph import freeze, precompile
from decoder.graph.graph_file import MAGIC, load_graph, save_graph
from readers.errors import FormatError, GraphError
from readers.tables.state_names import model_of_state
from tests.decoder.graphs import make_acceptor, sealed

# Word w is [a_s2] w [b_s2]; silence may follow; two ways lead from 0 to 1, the dearer of them is of no use.
ARCS = [
    (0, 1, "[a_s2]", 0.5),
    (0, 1, "[a_s2]", 2.0),
    (1, 2, "w", 0.25),
    (2, 3, "[b_s2]", 0.0),
    (3, 4, "[sil[2]]", 1.0),
    (4, 1, "[a_s2]", 0.0),
    (3, 1, "[a_s2]", 0.125),
]
FINALS = {3: 0.0, 4: 1.5}
TRANSITIONS = {
    "a_s2": (-0.5, -1.0),
    "b_s2": (-0.25, -2.0),
    "sil[2]": (-0.125, -4.0),
    "unused_s2": (-1.0, -1.0),
}


def compile_example(**changes):
    arguments = {"transitions": TRANSITIONS, "lookahead": {"w": 0.75}, **changes}
    return precompile(make_acceptor(ARCS, FINALS), **arguments)


def test_positions_are_pairs_of_state_reached_and_hmm_state():
    graph = compile_example()
    arrays = graph.arrays
    pairs = [(int(e), graph.states[s]) for e, s in zip(arrays.position_exit, arrays.position_state)]
    assert pairs == [(1, "a_s2"), (3, "b_s2"), (4, "sil[2]")]
    assert arrays.self_cost.tolist() == [0.5, 0.25, 0.125]
    assert arrays.forward_cost.tolist() == [1.0, 2.0, 4.0]


def test_arcs_lead_to_positions_and_the_cheapest_of_equal_arcs_stays():
    arrays = compile_example().arrays
    arcs = [
        (s, int(arrays.emitting_target[i]), float(arrays.emitting_cost[i]))
        for s in range(5)
        for i in range(arrays.first_emitting[s], arrays.first_emitting[s + 1])
    ]
    assert arcs == [(0, 0, 0.5), (2, 1, 0.0), (3, 0, 0.125), (3, 2, 1.0), (4, 0, 0.0)]
    assert arrays.first_word.tolist() == [0, 0, 1, 1, 1, 1]
    assert (arrays.word_target.tolist(), arrays.word_cost.tolist()) == ([2], [0.25])


def test_names_models_lookahead_and_final_costs():
    graph = compile_example(outputs={"w": "W!"})
    assert (graph.words, graph.outputs, graph.lookahead.tolist()) == (["w"], ["W!"], [0.75])
    assert graph.states == list(TRANSITIONS)  # the whole model set, also what no arc uses
    assert [graph.models[m] for m in graph.state_model] == ["a", "b", "sil", "unused"]
    assert graph.state_index.tolist() == [2, 2, 2, 2]
    assert graph.arrays.final_cost.tolist() == [math.inf, math.inf, math.inf, 0.0, 1.5]


def test_junctions_are_where_paths_meet_or_end():
    # State 1: one position alone leads there.  2: a word arc alone.  3 and 4 are final.
    assert compile_example().arrays.junction.tolist() == [0, 0, 0, 1, 1]
    two_ways = [*ARCS, (0, 1, "[b_s2]", 0.0)]
    assert precompile(make_acceptor(two_ways, FINALS)).arrays.junction.tolist() == [0, 1, 0, 1, 1]
    after_word = [*ARCS, (0, 2, "[b_s2]", 0.0)]
    assert precompile(make_acceptor(after_word, FINALS)).arrays.junction.tolist() == [0, 0, 1, 1, 1]


def test_without_transitions_they_cost_nothing():
    graph = compile_example(transitions=None)
    assert not graph.arrays.self_cost.any()
    assert not graph.arrays.forward_cost.any()
    assert graph.states == ["a_s2", "b_s2", "sil[2]"]


def test_state_map_overrules_names():
    graph = compile_example(state_map={"x": ["b_s2", "a_s2"]})
    assert [graph.models[m] for m in graph.state_model] == ["x", "x", "sil", "unused"]
    assert graph.state_index.tolist() == [3, 2, 2, 2]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aa_s2", ("aa", 2)),
        ("eh_s3_1", ("eh", 3)),
        ("ao_s4_23", ("ao", 4)),
        ("sil[4]", ("sil", 4)),
        ("_ah_[2]", ("_ah_", 2)),
        ("h#_s2", ("h#", 2)),
        ("noise", ("noise", 0)),
        ("a_s9999999999", ("a_s9999999999", 0)),
    ],
)
def test_model_of_state(name, expected):
    assert model_of_state(name) == expected


def test_word_levels_count_word_arcs_in_a_row():
    arcs = [(0, 1, "a", 0), (0, 2, "b", 0), (1, 2, "c", 0), (2, 3, "[x]", 0), (3, 0, "[x]", 0)]
    assert precompile(make_acceptor(arcs, {3: 0})).arrays.word_level.tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize(
    ("arcs", "message"),
    [
        ([*ARCS, (3, 0, "<eps>", 0)], r"epsilon arc from state 3 to 0; expected HMM states and words only"),
        ([*ARCS, (3, 0, "0", 0)], r"epsilon arc from state 3 to 0"),
        (
            [(0, 1, "[x]", 0), (1, 2, "a", 0), (2, 3, "b", 0), (3, 1, "c", 0)],
            r"cycle of word arcs goes through state [123]",
        ),
        ([(0, 1, "w", 0)], r"no arc with an HMM state"),
        ([(0, 1, "[a_s2]", float("nan"))], r"emitting_cost contains nan; expected costs from -1e.30 to 1e.30 or inf"),
    ],
)
def test_unusable_acceptors_are_refused(arcs, message):
    with pytest.raises(GraphError, match=message):
        precompile(make_acceptor(arcs, {1: 0.0}))


def test_missing_tables_name_what_is_missing():
    with pytest.raises(GraphError, match=r"no transitions for 2 HMM states, the first \[b_s2\]"):
        compile_example(transitions={"a_s2": (0, 0)})
    with pytest.raises(GraphError, match="no look-ahead score for 1 words, the first 'w'"):
        compile_example(lookahead={"v": 0.0})
    with pytest.raises(GraphError, match="no final state"):
        precompile(make_acceptor(ARCS, {}))


def test_saved_graph_comes_back_the_same(tmp_path):
    graph = compile_example(outputs={"w": ""})
    save_graph(graph, tmp_path / "g.dg")
    loaded = load_graph(tmp_path / "g.dg")
    for name, array in graph.arrays._asdict().items():
        back = getattr(loaded.arrays, name)
        np.testing.assert_array_equal(back, array)
        assert back.dtype == array.dtype
        assert not back.flags.writeable
        assert not array.flags.writeable
    for name in ("start", "words", "outputs", "states", "models"):
        assert getattr(loaded, name) == getattr(graph, name)
    for name in ("lookahead", "state_model", "state_index"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(graph, name))


def test_graph_without_words_comes_back(tmp_path):
    save_graph(precompile(make_acceptor([(0, 1, "[x]", 0)], {1: 0})), tmp_path / "g.dg")
    assert load_graph(tmp_path / "g.dg").words == []


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "g.dg"
    save_graph(compile_example(), path)
    return path


def change(path, where, data):
    raw = bytearray(path.read_bytes())
    raw[where : where + len(data)] = data
    path.write_bytes(sealed(raw))


def section(path, name):
    """(offset of its table entry, offset of its data) in the file."""
    raw = path.read_bytes()
    entry = raw.index(name.encode() + b"\0", 32)
    return entry, struct.unpack_from("<Q", raw, entry + 24)[0]


def test_truncated_file_names_both_sizes(path):
    raw = path.read_bytes()
    for size in (len(raw) - 1, 2000, 700):
        path.write_bytes(raw[:size])
        with pytest.raises(FormatError, match=rf"g\.dg: {size} bytes; expected {len(raw)}"):
            load_graph(path)
    for size in (0, 5, 31):
        path.write_bytes(raw[:size])
        with pytest.raises(FormatError, match="expected a compiled decoding graph"):
            load_graph(path)


def test_other_files_and_versions_are_refused(path):
    change(path, len(MAGIC), struct.pack("<I", 99))
    with pytest.raises(FormatError, match="version 99; expected 2; compile it again"):
        load_graph(path)
    path.write_text("0\t1\t[aa_s2]\t0.5\n0\t1\t[aa_s2]\t0.5\n")
    with pytest.raises(FormatError, match="expected a compiled decoding graph; compile an acceptor with argon"):
        load_graph(path)


@pytest.mark.parametrize(
    ("name", "field", "value", "message"),
    [
        ("self_cost", 24, 2**40, "expected inside the file"),
        ("self_cost", 24, 7, "expected inside the file"),
        ("self_cost", 32, 2**60, "expected inside the file"),
        ("self_cost", 32, 2, "2 entries in self_cost; expected 3 as in position_state"),
        ("first_word", 32, 5, "5 entries in first_word; expected 6 as in first_emitting"),
    ],
)
def test_damaged_table_is_refused(path, name, field, value, message):
    change(path, section(path, name)[0] + field, struct.pack("<Q", value))
    with pytest.raises(FormatError, match=message) as caught:
        load_graph(path)
    assert "; the file is damaged" in str(caught.value)
    assert field != 24 or "; the file is damaged, compile it again with argonaut graph" in str(caught.value)


def test_too_many_sections_are_refused(path):
    change(path, 12, struct.pack("<I", 2**31))
    with pytest.raises(FormatError, match=r"2147483648 sections in the table; .*damaged, compile it again"):
        load_graph(path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("position_exit", 5, "position_exit from 3 to 5; expected 0 to 4"),
        ("position_exit", -1, "position_exit from -1 to 4"),
        ("emitting_target", 3, "emitting_target from 0 to 3; expected 0 to 2"),
        ("position_state", 4, "position_state"),
        ("word_label", 1, "word_label"),
        ("word_target", 0, "word levels do not rise"),
        ("first_emitting", 1, "offsets in first_emitting do not rise from 0 to 5"),
        ("state_model", 9, "state_model"),
    ],
)
def test_numbers_out_of_range_are_refused(path, name, value, message):
    change(path, section(path, name)[1], struct.pack("<i", value))
    with pytest.raises(GraphError, match=message):
        load_graph(path)


@pytest.mark.parametrize("name", ["forward_cost", "self_cost", "emitting_cost", "word_cost", "final_cost", "lookahead"])
@pytest.mark.parametrize("value", [math.nan, -math.inf, -3e38, 3e38])
def test_costs_that_are_no_costs_are_refused(path, name, value):
    change(path, section(path, name)[1], struct.pack("<f", value))
    with pytest.raises(GraphError, match=rf"{name} contains {re.escape(f'{value:g}')}; expected costs"):
        load_graph(path)


@pytest.mark.parametrize(("name", "count"), [("first_emitting", 6), ("first_word", 6)])
def test_offsets_whose_differences_overflow_are_refused(path, name, count):
    offset = section(path, name)[1]
    last = struct.unpack_from("<i", path.read_bytes(), offset + 4 * (count - 1))[0]
    wrapping = (2**31 - 1, -(2**31), -1)  # each 1 or more above the one before, modulo 2^32
    change(path, offset, struct.pack(f"<{count}i", 0, 0, *wrapping, last))
    with pytest.raises(GraphError, match=f"offsets in {name} do not rise"):
        load_graph(path)


def test_word_levels_are_those_of_the_arcs(path):
    change(path, section(path, "word_level")[1], struct.pack("<5i", 0, 0, 4, 0, 0))  # four levels for one word arc
    with pytest.raises(GraphError, match="word levels do not rise along word arcs"):
        load_graph(path)


def test_a_changed_bit_is_noticed_unless_checksums_are_ignored(path):
    raw = bytearray(path.read_bytes())
    raw[section(path, "forward_cost")[1]] ^= 1
    path.write_bytes(raw)
    with pytest.raises(FormatError, match=r"g\.dg: wrong checksum of the bytes from 0; the file is damaged, compile"):
        load_graph(path)
    assert load_graph(path, verify=False).arrays.forward_cost[0] == pytest.approx(1, abs=1e-6)
    raw[section(path, "forward_cost")[1]] ^= 1
    raw[-1] ^= 1
    path.write_bytes(raw)
    with pytest.raises(FormatError, match="wrong checksum"):
        load_graph(path)


def test_a_pipe_is_refused_before_it_is_opened(path):
    os.mkfifo(path.with_name("pipe"))
    with pytest.raises(FormatError, match="pipe: a directory, a device or a pipe; expected a file"):
        load_graph(path.with_name("pipe"))


def test_names_that_are_not_utf8_are_refused(path):
    change(path, section(path, "words")[1], b"\xff")
    with pytest.raises(FormatError, match="words are not UTF-8"):
        load_graph(path)


def test_a_failed_write_leaves_the_old_graph(path):
    before = path.read_bytes()
    graph = compile_example()
    graph.words[0] = "two\nlines"
    with pytest.raises(FormatError, match="contains a line break"):
        save_graph(graph, path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["g.dg"]


def test_freeze_refuses_counts_beyond_32_bits():
    arrays = compile_example().arrays
    huge = np.broadcast_to(np.float32(0), 2**31)
    with pytest.raises(GraphError, match="2147483648 entries in word_cost; expected at most 2147483647"):
        freeze(arrays._replace(word_cost=huge))


def test_of_equal_word_arcs_the_cheapest_stays():
    arcs = [(0, 1, "[a]", 0.5), *((1, 2, "x", cost) for cost in (0.5, 0.25, 1.0)), (1, 2, "y", 2.0), (2, 0, "[a]", 0.0)]
    arrays = precompile(make_acceptor(arcs, {2: 0.0}), {"a": (-0.7, -0.7)}).arrays
    assert arrays.word_cost.tolist() == [0.25, 2.0]
    assert arrays.first_word.tolist() == [0, 0, 2, 2]
