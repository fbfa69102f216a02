"""OpenFst's files: equal to what kaldifst wrote, and n-gram models equal to their definition."""

import struct

import kaldifst
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.errors import FormatError
from readers.kaldi.fst import read_fst
from recipes.file_kinds import describe_file
from tests.readers.kaldi.fst_files import header, lookahead_file, ngram_file, symbol_table, vector_file

ARCS = st.lists(
    st.tuples(*[st.integers(0, 3)], *[st.integers(0, 9)] * 2, st.floats(-9, 9, width=32), st.integers(0, 3)), max_size=9
)
SYMBOLS = {0: "<eps>", 1: "a", 2: "b"}
# The last word comes first in a history.
HISTORIES = {
    (): (float("inf"), 2.0, {1: 1.0, 2: 1.5}),
    (0,): (0.25, None, {1: 0.5}),  # of <s>
    (1,): (0.125, 0.75, {2: 0.375}),
    (2,): (0.5, None, {1: 3.0}),
    (1, 2): (0.625, None, {2: 4.0}),  # "b a"
}


def arcs_of(fst):
    return list(zip(*(column.tolist() for column in (fst.source, fst.input, fst.output, fst.cost, fst.target))))


@settings(max_examples=25, deadline=None)
@given(arcs=ARCS, finals=st.lists(st.floats(0, 9, width=32) | st.just(np.inf), min_size=4, max_size=4))
def test_vector_and_const_files_are_read_as_they_were_written(tmp_path_factory, arcs, finals):
    path = tmp_path_factory.mktemp("fst") / "a.fst"
    path.write_bytes(vector_file(finals, arcs, start=1))
    fst = read_fst(path)
    assert (fst.kind, fst.start, fst.final_cost.tolist()) == ("vector", 1, finals)
    assert arcs_of(fst) == sorted(arcs, key=lambda arc: arc[0])
    other = kaldifst.StdVectorFst.read(str(path))
    for flavour in (kaldifst.StdConstFst(other), other):
        flavour.write(str(path))
        again = read_fst(path)
        assert arcs_of(again) == arcs_of(fst)
        assert (again.start, again.final_cost.tolist()) == (1, finals)
    path.write_bytes(lookahead_file(path.read_bytes()))
    assert read_fst(path).kind == "olabel_lookahead"
    assert arcs_of(read_fst(path)) == arcs_of(fst)


def test_an_ngram_file_is_read(tmp_path):
    path = tmp_path / "Gr.fst"
    path.write_bytes(ngram_file(HISTORIES, SYMBOLS, start=(0,)))
    fst = read_fst(path)
    assert (fst.start, fst.symbols) == (1, SYMBOLS)
    assert fst.final_cost.tolist() == [2.0, np.inf, 0.75, np.inf, np.inf]
    assert arcs_of(fst) == [
        *((0, 1, 1, 1.0, 2), (0, 2, 2, 1.5, 3)),
        *((1, 0, 0, 0.25, 0), (1, 1, 1, 0.5, 2)),
        *((2, 0, 0, 0.125, 0), (2, 2, 2, 0.375, 3)),
        *((3, 0, 0, 0.5, 0), (3, 1, 1, 3.0, 4)),  # to "b a"
        *((4, 0, 0, 0.625, 2), (4, 2, 2, 4.0, 3)),  # there is no history "a b"
    ]
    assert describe_file(str(path))


GOOD = vector_file([np.inf, 0.0], [(0, 1, 1, 0.5, 1)])
NGRAM = ngram_file(HISTORIES, SYMBOLS, (0,))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\0B<Nnet3>", r":0: another kind of file; expected a transducer of OpenFst"),
        (header("compact", 0, 1, 0), r":0: type 'compact'; expected vector or const or ngram or olabel_lookahead"),
        (GOOD[:30], "the end of the file; expected .* bytes more"),
        (GOOD[:-3], "damage in state 1; expected its number of arcs, and the arcs"),
        (vector_file([0.0], [(0, 1, 1, 0.5, 1)]), "an arc to state 1 or 1; expected 0 to 0"),
        (vector_file([0.0], [(0, -1, 1, 0.5, 0)]), "a negative label; expected labels of at least 0"),
        (vector_file([0.0], [(0, 1, 1, np.nan, 0)]), "a cost that is infinite or NaN"),
        (vector_file([0.0], [], start=3), "start state 3 of 1; expected one of less than"),
        (header("vector", 0, 2**40, 0), "1099511627776 states; expected at most 0, for the size of the file"),
        (header("const", 0, 2**40, 0, 2), "1099511627776 states end at byte .*; expected at most"),
        (lookahead_file(NGRAM), "type 'ngram'; expected vector or const within olabel_lookahead"),
        (header("ngram", 0, 1, 0, 4, 2) + symbol_table({})[:-8] + struct.pack("<q", 2**40), "1099511627776 symbols"),
        (header("ngram", 0, 1, 0, 4) + struct.pack("<QQQ", 2**50, 0, 0), "1125899906842624 histories, 0 n-grams"),
        (NGRAM[:-4], "costs end at byte"),
        (
            NGRAM.replace(struct.pack("<QQQ", 5, 6, 2), struct.pack("<QQQ", 4, 6, 2)),
            "other numbers of bits; expected as many as histories",
        ),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "x.fst"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=rf"x\.fst:\d+: .*{message.removeprefix(':0: ')}"):
        read_fst(path)
