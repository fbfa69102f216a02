"""Search options that a compiled graph carries."""

import json
from dataclasses import fields

import numpy as np
import pytest

from decoder.graph import GraphDefaults, load_defaults, load_graph, precompile, save_defaults, save_graph
from decoder.graph.graph_file import DEFAULTS, FORMAT, TUNED_OPTIONS, read_silence
from decoder.search import SearchOptions
from readers.errors import ConfigError, FormatError
from tests.decoder.graphs import make_acceptor

TUNED = GraphDefaults({"acweight": 0.25, "lm_scale": 2, "max_tokens": 500}, {"am": "net.dnn", "lm": "words.arpa"})


def one_word_graph():
    return precompile(make_acceptor([(0, 1, "[a_s2]", 0.5), (1, 2, "word", 0.0)], {2: 1.0}))


@pytest.fixture
def path(tmp_path):
    save_graph(one_word_graph(), tmp_path / "graph.dg")
    return tmp_path / "graph.dg"


def test_round_trip_and_removal(path):
    plain = path.read_bytes()
    assert load_defaults(path) == GraphDefaults()
    save_defaults(path, TUNED)
    assert load_defaults(path) == TUNED
    graph = load_graph(path)  # with checksums
    assert np.array_equal(graph.arrays.final_cost, one_word_graph().arrays.final_cost)
    save_defaults(path, GraphDefaults({"beam": 9.0, "lookahead_sums": True}))
    assert load_defaults(path) == GraphDefaults({"beam": 9.0, "lookahead_sums": True})
    save_defaults(path, GraphDefaults())
    assert path.read_bytes() == plain
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    "options",
    [
        *({"beam": np.inf}, {"beam": 1e31}, {"beam": True}, {"acweight": np.nan}, {"max_tokens": 0.5}, {"silence": 1}),
        {"lookahead_sums": 1},
    ],
)
def test_what_a_graph_cannot_carry_is_refused(path, options):
    plain = path.read_bytes()
    with pytest.raises(ConfigError, match=rf"graph.dg: search option {next(iter(options))} = .*; expected one of ac"):
        save_defaults(path, GraphDefaults(options))
    assert path.read_bytes() == plain


def test_numbers_of_numpy_are_stored(path):
    save_defaults(path, GraphDefaults({"beam": np.float32(9), "max_tokens": np.int64(500)}))
    assert load_defaults(path) == GraphDefaults({"beam": 9.0, "max_tokens": 500})


def test_every_option_is_one_of_the_search():
    assert set(TUNED_OPTIONS) <= {field.name for field in fields(SearchOptions)}


def test_a_damaged_graph_gets_no_defaults(path):
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(FormatError, match="wrong checksum"):
        save_defaults(path, TUNED)
    assert path.read_bytes() == content


GOOD = {"version": 1, "options": {}}
HOSTILE = {
    "no JSON": b"{",
    "no text": b"\xff\xfe",
    "nothing": b"",
    "large": b" " * 70_000,
    "list": b"[]",
    "nested": b"[" * 60_000,
    "version": {"version": 2, "options": {}},
    "no options": {"version": 1},
    "options": {"version": 1, "options": [1]},
    "unknown": {"version": 1, "options": {"silence": 1}},
    "text": {"version": 1, "options": {"acweight": "1"}},
    "truth": {"version": 1, "options": {"acweight": True}},
    "NaN": b'{"version": 1, "options": {"acweight": NaN}}',
    "infinite": b'{"version": 1, "options": {"beam": 1e999}}',
    "huge": b'{"version": 1, "options": {"beam": 1' + b"0" * 400 + b"}}",
    "fraction of a token": {"version": 1, "options": {"max_tokens": 1.5}},
    "model": GOOD | {"tuned_with": {"am": 1}},
    "models": GOOD | {"tuned_with": ["net"]},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_defaults_are_refused(path, name):
    content = HOSTILE[name] if isinstance(HOSTILE[name], bytes) else json.dumps(HOSTILE[name]).encode()
    start, sections = FORMAT.read(path)
    FORMAT.write(path, start, {**sections, DEFAULTS: np.frombuffer(content, np.uint8)})
    with pytest.raises(
        FormatError, match=r"graph\.dg: defaults: .*; expected search options; compile it again"
    ) as fault:
        load_defaults(path)
    assert len(str(fault.value)) < 500
    load_graph(path)  # which does not read them


def test_an_array_of_the_graph_cannot_be_left_out_for_the_defaults(path):
    save_defaults(path, TUNED)
    start, sections = FORMAT.read(path)
    del sections["word_level"]
    FORMAT.write(path, start, sections)
    with pytest.raises(FormatError, match=r"graph\.dg: no section 'word_level'; expected one; the file is damaged"):
        load_graph(path)


def test_an_unknown_topology_of_silence_is_refused(tmp_path):
    (tmp_path / "silence").write_text("sil round\n")
    with pytest.raises(FormatError, match=r"silence: topology 'round'; expected .*any-order"):
        read_silence(tmp_path / "silence")
