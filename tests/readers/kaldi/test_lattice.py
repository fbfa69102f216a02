"""Lattices in Kaldi's archives: all forms read back, read by OpenFst, as Kaldi prints them, and damaged."""

from dataclasses import replace
from itertools import islice

import kaldifst
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.errors import FormatError, GraphError
from readers.htk.slf import read_slf, write_slf
from readers.kaldi.lattice import read_kaldi_lattices, word_table, write_kaldi_lattices, write_word_table
from readers.results.lattice import NULL_WORD, Lattice, Segments
from tests.decoder.lattices.small_lattices import paths, random_lattice, spoken

WORDS = {"<eps>": 0, "a": 1, "b": 2, "c": 7}
FORMS = [(binary, compact) for binary in (False, True) for compact in (False, True)]
SCORE = st.floats(-1e6, 1e6, width=32)


def content(lattice):
    """All that Kaldi's form holds of a lattice."""
    columns = (lattice.start, lattice.end, lattice.acoustic, lattice.lm)
    times = None if np.isnan(lattice.time).any() else lattice.time.tolist()
    return [*(column.tolist() for column in columns), lattice.word, times, lattice.segments.rows(), lattice.utterance]


def round_trip(path, lattice, binary, compact):
    write_kaldi_lattices(path, [(name, lattice) for name in ("u", "v")], WORDS, binary=binary, compact=compact)
    (first, lattice), (second, again) = read_kaldi_lattices(path, WORDS)
    assert (first, second, again.word) == ("u", "v", lattice.word)
    return lattice


@st.composite
def chains(draw, frames):
    """Lattices between nodes in a row, with so many frames from each to the next: transition ids, or none for 0."""
    counts = [frames] * draw(st.integers(1, 5))
    links = [(node, node + 1) for node in range(len(counts)) for _ in range(draw(st.integers(1, 3)))]
    ids = st.lists(st.integers(1, 4), min_size=frames, max_size=frames)
    rows = []
    for _ in links:
        runs = []
        for number in map(str, draw(ids)):
            if runs and runs[-1][0] == number:
                runs[-1] = number, runs[-1][1] + 1
            else:
                runs.append((number, 1))
        rows.append([(number, count * 0.01, None) for number, count in runs])
    scores = [draw(st.lists(SCORE, min_size=len(links), max_size=len(links))) for _ in range(2)]
    words = [draw(st.sampled_from([NULL_WORD, "a", "b", "c"])) for _ in links]
    times = np.arange(len(counts) + 1) * frames * 0.01 if frames else np.full(len(counts) + 1, np.nan)
    start, end = zip(*links)
    return Lattice.of_words(times, start, end, words, *scores, segments=Segments.of_rows(rows), utterance="u")


@pytest.mark.parametrize(("binary", "compact"), FORMS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_is_written_is_read_back(tmp_path_factory, binary, compact, data):
    lattice = data.draw(chains(data.draw(st.integers(0, 3 if compact else 1))))
    found = round_trip(tmp_path_factory.mktemp("k") / "l", lattice, binary, compact)
    assert content(found) == content(lattice)


def described(lattice):
    """(words, score) of every path, sorted."""
    return sorted((spoken(lattice, path), score) for path, score in paths(lattice))


@pytest.mark.parametrize(("binary", "compact"), FORMS)
@pytest.mark.parametrize("seed", range(8))
def test_from_htks_form_to_kaldis(tmp_path, binary, compact, seed):
    write_slf(tmp_path / "l.lat", random_lattice(seed), 17)
    lattice = read_slf(tmp_path / "l.lat")
    found = replace(round_trip(tmp_path / "l", lattice, binary, compact), acoustic_scale=lattice.acoustic_scale)
    expected = described(lattice)
    assert [words for words, _ in described(found)] == [words for words, _ in expected]
    assert [score for _, score in described(found)] == pytest.approx([score for _, score in expected], abs=1e-5)
    again = round_trip(tmp_path / "again", replace(found, acoustic_scale=1.0), binary, compact)
    assert content(again) == content(found)


@settings(max_examples=30, deadline=None)
@given(lattice=chains(3))
def test_an_arc_for_each_transition_id(tmp_path_factory, lattice):
    directory = tmp_path_factory.mktemp("k")
    long = [round_trip(directory / "long", lattice, binary, False) for binary in (False, True)]
    assert content(long[0]) == content(long[1])
    assert described(long[0]) == described(lattice)
    assert long[0].num_links == 3 * lattice.num_links
    assert long[0].time.max() == pytest.approx(lattice.time.max())


def test_openfst_reads_and_writes_the_binary_form(tmp_path):
    lattice = random_lattice(3)
    write_kaldi_lattices(tmp_path / "ark", [("u", lattice)], WORDS, binary=True, compact=False)
    (tmp_path / "fst").write_bytes((tmp_path / "ark").read_bytes().removeprefix(b"u "))
    fst = kaldifst.Lattice.read(str(tmp_path / "fst"))
    assert fst.num_states == lattice.num_nodes
    write_kaldi_lattices(tmp_path / "text", [("u", lattice)], WORDS, compact=False)
    printed = [line.split() for line in fst.to_str(show_weight_one=True).splitlines()]
    written = [line.split() for line in (tmp_path / "text").read_text().splitlines()[1:-1]]
    for line, expected in zip(sorted(printed), sorted(written), strict=True):
        assert line[:-1] == expected[:-1]
        costs, expected_costs = ([float(cost) for cost in row[-1].split(",")] for row in (line, expected))
        assert costs == pytest.approx(expected_costs, rel=1e-5)
    fst.write(str(tmp_path / "again"))
    (tmp_path / "ark2").write_bytes(b"u " + (tmp_path / "again").read_bytes())
    ((_, found),) = read_kaldi_lattices(tmp_path / "ark2", WORDS)
    ((_, expected),) = read_kaldi_lattices(tmp_path / "ark", WORDS)
    assert content(found) == content(expected)


# As Kaldi prints: a blank after the name, no costs of zero, several final nodes, one of which leads on.
KALDI = """u1 \n0\t1\t1\t2.5,-3.25,4_4_3
0\t2\t2
1\t2\t0\t0,0,5
1\t1.5,0,6_6
2\t-0.25,2,\n
u2 \n0\t1\t4\t7\t1,2
1\t2\t5\t0
2\n
"""


def test_as_kaldi_prints_them(tmp_path):
    (tmp_path / "l").write_text(KALDI)
    (_, first), (_, second) = read_kaldi_lattices(tmp_path / "l", WORDS)
    assert list(zip(first.start, first.end, first.word)) == [
        (0, 1, "a"), (0, 2, "b"), (1, 2, NULL_WORD), (1, 3, NULL_WORD), (2, 3, NULL_WORD),
    ]  # fmt: skip
    assert first.lm.tolist() == [-2.5, 0, 0, -1.5, 0.25]
    assert first.acoustic.tolist() == [3.25, 0, 0, 0, -2]
    assert first.segments.rows()[0] == (("4", 0.02, None), ("3", 0.01, None))
    assert second.word == ["c", NULL_WORD]
    assert (second.lm.tolist(), second.acoustic.tolist()) == ([-1, 0], [-2, 0])
    assert second.time.tolist() == [0.0, 0.01, 0.02]
    assert first.path == str(tmp_path / "l")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("u\n0 1 x\n", r"l:2: '0 1 x'; expected the name of a lattice, then its arcs"),
        ("u\n0 1\n1\n", r"l:2: '0 1'"),
        ("u\n0 1 2 3 4 1,2\n1\n", r"l:2: '0 1 2 3 4 1,2'"),
        ("u\n0 1 1 1,2,3,4\n1\n", r"l:2: '0 1 1 1,2,3,4'"),
        ("u\n0 1 1 1,x\n1\n", r"l:2: '0 1 1 1,x'"),
        ("u\n0 1 1 1,2,3_x\n1\n", r"l:2: '0 1 1 1,2,3_x'"),
        ("u\n0 -1 1 1,2\n1\n", r"l:2: '0 -1 1 1,2'"),
        ("0 1 1\n1\n", r"l:1: '0 1 1'; expected the name of a lattice"),
        ("u\n0 1 1\n", r"l:3: end of lattice 'u'; expected nodes .* one of them final"),
        ("u\n0 1 1\n1 Infinity,Infinity,\n", r"l:4: end of lattice 'u'; expected nodes"),
        ("u\n0 1 1 nan,0\n1\n", r"l:4: end of lattice 'u'; expected nodes"),
        ("u\n0 1 1 0,-1e39\n1\n", r"l:4: end of lattice 'u'; expected nodes"),
        ("u\n0 999999999999 1\n999999999999\n", r"l:4: end of lattice 'u'; expected nodes"),
        ("u\n0 1 5\n1\n", r"l: lattice u: no word has the number 5; expected one in the table"),
    ],
)
def test_malformed_text(tmp_path, text, message):
    (tmp_path / "l").write_text(text)
    with pytest.raises(FormatError, match=message):
        list(read_kaldi_lattices(tmp_path / "l", WORDS))


@pytest.mark.parametrize("compact", [False, True])
def test_damaged_binary_lattices(tmp_path, compact):
    path = tmp_path / "l"
    write_kaldi_lattices(path, [("u", random_lattice(1))], WORDS, binary=True, compact=compact)
    raw = path.read_bytes()
    damaged = [raw[:size] for size in range(20, len(raw), 7)]
    damaged += [raw[:14] + b"\xff" + raw[15:], raw.replace(b"lattice4", b"lattice8"), raw + b"w ", raw + raw[:-1]]
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(FormatError, match=r"l: damaged lattice '[uw]?'; expected a complete one of OpenFst's type"):
            list(read_kaldi_lattices(path, WORDS))


def test_binary_lattices_without_names_are_refused(tmp_path):
    path = tmp_path / "l"
    write_kaldi_lattices(path, [("u", random_lattice(1))], WORDS, binary=True)
    raw = path.read_bytes()[2:].replace(b" ", b"!")
    for data in (raw, raw * 2):
        path.write_bytes(data)
        with pytest.raises(FormatError, match="damaged lattice"):
            list(islice(read_kaldi_lattices(path, WORDS), 5))


@pytest.mark.parametrize("label", ["0", "2147483648", "9" * 5000])
def test_numbers_that_are_no_transition_ids_are_not_written(tmp_path, label):
    lattice = segmented(label, 1.0)
    for binary, compact in FORMS:
        write_kaldi_lattices(tmp_path / "l", [("u", lattice)], WORDS, binary=binary, compact=compact)
        ((_, again),) = read_kaldi_lattices(tmp_path / "l", WORDS)
        assert again.segments.rows() == [()]


def test_segments_of_immense_durations_are_refused(tmp_path):
    with pytest.raises(GraphError, match="lattice u: segments of 100000000000 frames; expected at most 100000000"):
        write_kaldi_lattices(tmp_path / "l", [("u", segmented("7", 1e9))], WORDS)


def segmented(label, seconds):
    """A lattice with a word of one segment."""
    segments = Segments.of_rows([[(label, seconds, None)]])
    return Lattice.of_words([0.0, seconds], [0], [1], ["a"], [-1.0], [0.0], segments=segments)


@pytest.mark.parametrize("word", ["", "new york", "\u2028"])
def test_words_that_end_where_kaldi_ends_them(tmp_path, word):
    with pytest.raises(GraphError, match="expected words without blanks"):
        write_word_table(tmp_path / "words", word_table(["a", word]))
    assert not (tmp_path / "words").exists()


def test_scores_that_float32_cannot_hold(tmp_path):
    lattice = Lattice.of_words([0.0, 1.0], [0], [1], ["a"], [-1e39], [0.0])
    with pytest.raises(GraphError, match="lattice u: link 0 has a score that is not finite; expected a number"):
        write_kaldi_lattices(tmp_path / "l", [("u", lattice)], word_table(lattice.word), binary=True)
    assert not (tmp_path / "l").exists()
