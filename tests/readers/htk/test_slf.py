"""Lattices in HTK's standard lattice format."""

import dataclasses
import gzip
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.common.text import canonical
from readers.errors import FormatError, GraphError
from readers.htk.slf import read_slf, write_slf
from readers.results.lattice import Lattice, Segments

# After HVite's own output: words on links.
LINKS = r"""VERSION=1.0
# a comment
UTTERANCE=testf1.mfc
lmname=wdnet
lmscale=20.00 wdpenalty=-30.00
N=3 L=3
I=0 t=0.00
I=1 t=0.36
I=2 t=0.75

J=0 S=0 E=1 W=SILENCE v=0 a=-3239.01 l=0.00 d=:sil-x,0.30,-3000:x+y,0.06:
J=2 S=0 E=2 W=FIVE v=1 a=-7000.5 l=-2.5 p=0.3
J=1 S=1 E=2 W=FOUR v=0 a=-3820.77 l=-1.20
"""

# The same with long names and words on nodes, nodes not in order.
NODES = """NODES=3 LINKS=2
I=2 WORD="two words" var=2 acoustic=-5 time=0.5 div=:a:
I=0 W=!NULL
I=1 W=ONE
J=0 START=0 END=1
J=1 START=1 END=2 language=-1 ngram=-9 acoustic=-6
"""


def put(path, text):
    path.write_text(text)
    return path


def columns(lattice):
    """What a lattice's file says as plain values; missing times as None, since NaN equals nothing."""
    names = [field.name for field in dataclasses.fields(lattice) if field.name not in ("path", "label", "words")]
    values = {name: getattr(lattice, name) for name in names}
    values = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
    values["time"] = [None if math.isnan(time) else time for time in values["time"]]
    return values | {"word": lattice.word, "segments": lattice.segments.rows()}


SCALES = {"acoustic_scale": 1.0, "lm_scale": 1.0, "word_penalty": 0.0}


@pytest.mark.parametrize("compress", [False, True])
def test_words_on_links(tmp_path, compress):
    (tmp_path / "l").write_bytes(gzip.compress(LINKS.encode()) if compress else LINKS.encode())
    lattice = read_slf(tmp_path / "l")
    assert columns(lattice) == {
        "time": [0.0, 0.36, 0.75],
        "start": [0, 1, 0],
        "end": [1, 2, 2],
        "word": ["SILENCE", "FOUR", "FIVE"],
        "acoustic": [-3239.01, -3820.77, -7000.5],
        "lm": [0.0, -1.2, -2.5],
        "variant": [0, 0, 1],
        "segments": [(("sil-x", 0.3, -3000.0), ("x+y", 0.06, None)), (), ()],
        "silence": None,
        **SCALES,
        "lm_scale": 20.0,
        "word_penalty": -30.0,
        "utterance": "testf1.mfc",
        "header": {"lmname": "wdnet"},
    }
    assert (lattice.num_nodes, lattice.num_links) == (3, 3)
    assert lattice.start.dtype == np.int32


def test_words_on_nodes_go_to_the_links_that_end_there(tmp_path):
    assert columns(read_slf(put(tmp_path / "l", NODES))) == {
        "time": [None, None, 0.5],
        "start": [0, 1],
        "end": [1, 2],
        "word": ["ONE", "two words"],
        "acoustic": [0.0, -6.0],
        "lm": [0.0, -1.0],
        "variant": [0, 2],
        "segments": [(), (("a", None, None),)],
        "silence": None,
        **SCALES,
        "utterance": "",
        "header": {},
    }


@pytest.mark.parametrize(
    ("base", "score", "expected"),
    [
        ("10", "-2", -2 * math.log(10)),
        ("0", "0.25", math.log(0.25)),
        ("0", "0", -math.inf),
        ("0.5", "2", 2 * math.log(0.5)),
        ("2.7182818", "-2", -2.0),
    ],
)
def test_scores_become_natural_logs(tmp_path, base, score, expected):
    text = f"base={base}\nN=2 L=1\nI=0\nI=1\nJ=0 S=0 E=1 a={score} l={score}\n"
    lattice = read_slf(put(tmp_path / "l", text))
    assert lattice.acoustic.tolist() == lattice.lm.tolist() == [pytest.approx(expected, rel=1e-12)]
    assert lattice.header == {}


def test_nodes_need_no_lines_of_their_own(tmp_path):
    lattice = read_slf(put(tmp_path / "l", "#\n#\nN=2 L=1\nJ=0 S=0 E=1 W=A\n"))
    assert (lattice.num_nodes, lattice.word) == (2, ["A"])


SMALL = "VERSION=1.0\nN=2 L=2\nI=0 t=0\nI=1 t=1\nJ=0 S=0 E=1 W=A\nJ=1 S=0 E=1 W=B\n"


def change(old, new):
    assert old in SMALL
    return SMALL.replace(old, new)


def test_times_in_another_unit(tmp_path):
    assert "VERSION=1.0" in LINKS
    lattice = read_slf(put(tmp_path / "l", LINKS.replace("VERSION=1.0", "VERSION=1.0 tscale=0.01 dir=f")))
    assert lattice.time.tolist() == pytest.approx([0.0, 0.0036, 0.0075])
    assert "tscale" not in lattice.header


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"l: no size line; expected N= and L=, the numbers of nodes and links"),
        ("VERSION=1.0\nN=2\n", r"l: no size line"),
        (change("VERSION=1.0", "hello"), r"l:1: 'hello'; expected fields name=value"),
        (change("W=A", 'W="A'), r"l:5: quote in '\"A' is not closed"),
        (change("W=A", 'W="A"x'), r"l:5: .*; expected fields name=value"),
        (change("N=2 L=2\n", ""), r"l:2: 'I=0 t=0' before the size of the lattice; expected N= and L= first"),
        (change("VERSION=1.0", "SUBLAT=x"), r"l:1: sub-lattice 'x'; expected a lattice of one level"),
        (SMALL + ".\n" + SMALL, r"l:7: sub-lattices; expected a lattice of one level"),
        (change("N=2", "N=x"), r"l:2: 'x'; expected a whole number"),
        (change("N=2", "N=999999999"), r"l: 999999999 nodes and 2 links announced; the file has 6 lines"),
        (change("L=2", "L=3"), r"l: 2 links, link 2 is missing; expected 3"),
        (change("N=2", "N=3"), r"l: 2 nodes, node 2 is missing; expected 3"),
        (change("I=1 t=1\n", "I=2 t=1\n"), r"l:4: node 2; expected numbers below 2, as announced"),
        (change("J=1", "J=0"), r"l:6: link 0 is repeated; expected each once"),
        (change("I=1 t=1", "K=1"), r"l:4: 'K=1'; expected a node \(I=\) or a link \(J=\)"),
        (change("t=1", "t=x"), r"l: node 1: t=x; expected a number"),
        (change("t=1", "t=inf"), r"l: node 1: t=inf; expected a time in seconds"),
        (change("t=1", "t=nan"), r"l: node 1: t=nan; expected a time in seconds"),
        (change("t=1", "t=1000000001"), r"l: node 1: t=1000000001; expected a time in seconds"),
        (change("t=1", "t=1e99"), r"l: node 1: t=1e99; expected a time in seconds"),
        (change("W=A", "a=x"), r"l:5: a=x; expected a number"),
        (change("W=A", "v=nan"), r"l:5: 'nan'; expected a whole number"),
        (change("W=A", "v=2147483648"), r"l:5: variant 2147483648 of .*; expected at most 2147483647"),
        (change("W=A", "d=:a,b:"), r"l:5: segments ':a,b:'; expected :label,duration,likelihood: and so on"),
        (change("W=A", "d=:a,-inf,1:"), r"l:5: segments ':a,-inf,1:'; expected :label"),
        (change("W=A", "d=:a,1,2,3:"), r"l:5: segments ':a,1,2,3:'; expected :label"),
        (change("J=1 S=0 ", "J=1 "), r"l:6: link 1 has no S=; expected its start and end node"),
        (change("J=1 S=0", "J=1 S=2"), r"l:6: link 1 names node 2; expected numbers below 2"),
        (change("J=1 S=0", "J=1 S=4294967295"), r"l:6: link 1 names node 4294967295; expected numbers below 2"),
        (change("E=1 W=A", "E=99999999999999999 W=A"), r"l:5: link 0 names node 99999999999999999; expected"),
        (change("J=1 S=0 E=1", "J=1 S=1 E=0"), r"l:6: link 1 goes from 1 s to 0 s; expected start <= end"),
        (change("VERSION=1.0", "base=x"), r"l: header: base=x; expected a number"),
        (change("VERSION=1.0", "base=-1"), r"l: header: base=-1; expected 0 or a base of logarithms"),
        (change("VERSION=1.0", "tscale=0"), r"l: header: tscale=0; expected the seconds of a unit of time"),
        (change("VERSION=1.0", "dir=b"), r"l:1: dir=b; expected f, a lattice that runs forwards"),
        (change("VERSION=1.0", "base=1"), r"l: header: base=1; expected 0 or a base of logarithms"),
        (change("VERSION=1.0", "lmscale=big"), r"l: header: lmscale=big; expected a number"),
        (change("VERSION=1.0", "quiet=:,a:"), r"l: header: quiet=:,a:; expected :model,label,label: and so on"),
    ],
)
def test_malformed_lattices_are_named(tmp_path, text, message):
    with pytest.raises(FormatError, match=message):
        read_slf(put(tmp_path / "l", text))


WORD = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=6).map(canonical).filter(bool)
SCORE = st.floats(-1e6, 1e6)
SEGMENT = st.one_of(
    st.tuples(st.sampled_from(["a", "x-y+z", "é", 'q"']), st.none(), st.none()),
    st.tuples(st.just("b"), st.floats(0, 10), st.one_of(st.none(), SCORE)),
)


@st.composite
def lattices(draw):
    num_nodes = draw(st.integers(1, 5))
    timed = draw(st.booleans())
    time = sorted(draw(st.lists(st.floats(0, 100), min_size=num_nodes, max_size=num_nodes)))
    pair = st.tuples(st.integers(0, num_nodes - 1), st.integers(0, num_nodes - 1)).map(sorted)
    link = st.tuples(pair, WORD, SCORE, SCORE, st.integers(0, 3), st.lists(SEGMENT, max_size=3).map(tuple))
    links = draw(st.lists(link, max_size=6))
    nodes = np.array([p for p, *_ in links], np.int32).reshape(-1, 2)
    labels = st.lists(st.sampled_from(["a", "b", "é"]), max_size=2).map(tuple)
    return Lattice.of_words(
        np.array(time) if timed else np.full(num_nodes, np.nan),
        nodes[:, 0],
        nodes[:, 1],
        [word for _, word, *_ in links],
        [acoustic for _, _, acoustic, *_ in links],
        [row[3] for row in links],
        variant=np.array([row[4] for row in links], np.int32),
        segments=Segments.of_rows(row[5] for row in links),
        silence=draw(st.one_of(st.none(), st.dictionaries(st.sampled_from(["sil", "a pause"]), labels))),
        utterance=draw(st.one_of(st.just(""), WORD)),
        header=draw(st.dictionaries(st.sampled_from(["lmname", "vocab"]), WORD)),
        **{name: draw(SCORE) for name in SCALES},
    )


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(lattice=lattices(), compress=st.booleans())
def test_what_is_written_is_read_back(tmp_path_factory, lattice, compress):
    path = tmp_path_factory.mktemp("slf") / ("l.gz" if compress else "l")
    write_slf(path, lattice, digits=17)
    assert columns(read_slf(path)) == columns(lattice)


def test_a_lattice_without_variants_and_segments(tmp_path):
    write_slf(tmp_path / "l", Lattice.of_words(np.zeros(2), [0], [1], ["A"], [-1.5], [-2.0]))
    header = "VERSION=1.0\nlmscale=1.0\nwdpenalty=0.0\nacscale=1.0\n"
    links = "N=2 L=1\nI=0 t=0\nI=1 t=0\nJ=0 S=0 E=1 W=A v=0 a=-1.5 l=-2\n"
    assert (tmp_path / "l").read_text() == header + links


GOOD = Lattice.of_words(np.zeros(2), [0], [1], ["A"], [0.0], [0.0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": np.zeros(0, np.int32)}, r"l: lattice with columns of \[0, 1\] links; expected one length"),
        ({"variant": np.zeros(3, int)}, r"l: lattice with columns of \[1, 3\] links; expected one length"),
        ({"end": np.array([2])}, r"l: links to nodes 2 to 2; expected 0 to 1"),
        ({"start": np.array([-1])}, r"l: links to nodes -1 to -1; expected 0 to 1"),
        (
            {"segments": Segments.of_rows([[("a:b", None, None)]])},
            r"l: segment label 'a:b' cannot be written; expected no : or , in it",
        ),
    ],
)
def test_lattices_that_cannot_be_written(tmp_path, changes, message):
    with pytest.raises(GraphError, match=message):
        write_slf(tmp_path / "l", dataclasses.replace(GOOD, **changes))


def test_silence_in_the_header_is_read_back(tmp_path):
    silence = {"sil": ("sil[2]", "sil[3]"), "a pause": ("sp 1",), "none": ()}
    write_slf(tmp_path / "l", dataclasses.replace(GOOD, silence=silence))
    assert 'quiet=":sil,sil[2],sil[3]:a pause,sp 1:none:"' in (tmp_path / "l").read_text()
    assert read_slf(tmp_path / "l").silence == silence
    write_slf(tmp_path / "l", dataclasses.replace(GOOD, silence={}))
    assert read_slf(tmp_path / "l").silence == {}
    with pytest.raises(GraphError, match="silence: segment label 's:l' cannot be written; expected no : or , in it"):
        write_slf(tmp_path / "l", dataclasses.replace(GOOD, silence={"sil": ["s:l"]}))


def test_segments_of_some_links():
    rows = [(("a", 0.5, None),), (), (("b", None, None), ("a", 0.25, -1.0)), (("c", 1.0, 2.0),)]
    segments = Segments.of_rows(rows)
    assert segments.rows() == rows
    assert segments.of_links(np.array([2, 0, 1, 2])).rows() == [rows[2], rows[0], rows[1], rows[2]]
    assert segments.of_links(np.array([], int)).rows() == []
