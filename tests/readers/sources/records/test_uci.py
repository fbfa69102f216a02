"""UCI text: the fast parser against a slow twin that splits lines, on any text; and one test for each message."""

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from readers.errors import ArgonautError, FormatError
from readers.sources.records.uci import UCILayout, read_uci

NUMBER = st.one_of(
    st.floats(-(2.0**100), 2.0**100, width=32).map(repr),
    st.integers(-(10**12), 10**12).map(str),
    st.sampled_from(["0", "-0", "+7", ".5", "5.", "1e-3", "-2.5E+4", "00012"]),
)
LABEL = st.text(st.characters(exclude_categories=["Z", "C"], exclude_characters="\t ,"), min_size=1, max_size=9)
BLANK = st.sampled_from([" ", "\t", "  ", " \t "])


def slow(text: str, numbers: list[int], labels: list[int]):
    rows = [(n, line.split()) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    values = [[np.float32(float(row[k])) for k in numbers] for _, row in rows]
    return [n for n, _ in rows], values, [[row[k] for _, row in rows] for k in labels]


def fast(path, layout: UCILayout, block_bytes: int):
    blocks = list(read_uci(path, layout, block_bytes))
    lines = np.concatenate([block.lines for block in blocks])
    numbers = np.concatenate([block.numbers for block in blocks])
    labels = [[one.decode() for block in blocks for one in block.labels[k].tolist()] for k in range(len(layout.labels))]
    return lines.tolist(), numbers, labels


@pytest.mark.slow
@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), ends=st.sampled_from(["\n", "\r\n"]), block_bytes=st.sampled_from([1, 7, 64, 1 << 20]))
def test_fast_parser_equals_the_slow_twin(tmp_path, data, ends, block_bytes):
    kinds = data.draw(st.lists(st.booleans(), min_size=1, max_size=6))  # True: a number
    pieces = []
    for _ in range(data.draw(st.integers(1, 8))):
        if data.draw(st.integers(0, 4)) == 0:
            pieces.append(data.draw(st.sampled_from(["", "  "])))
        tokens = [data.draw(NUMBER if kind else LABEL) for kind in kinds]
        pieces.append("".join(data.draw(BLANK) + token for token in tokens))
    text = ends.join(pieces) + data.draw(st.sampled_from(["", ends]))
    numbers = [k for k, kind in enumerate(kinds) if kind]
    if numbers:
        numbers = data.draw(st.lists(st.sampled_from(numbers), max_size=5))
    labels = data.draw(st.lists(st.integers(0, len(kinds) - 1), max_size=3))
    path = tmp_path / "data.txt"
    path.write_bytes(text.encode())
    lines, values, names = slow(text.replace("\r", ""), numbers, labels)
    got = fast(path, UCILayout(numbers, labels), block_bytes)
    assert got[0] == lines
    np.testing.assert_array_equal(got[1], np.array(values, np.float32).reshape(len(lines), len(numbers)))
    assert got[1].dtype == np.float32
    assert got[2] == names


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=60), columns=st.integers(1, 3))
def test_any_bytes_give_records_or_one_line(tmp_path, raw, columns):
    path = tmp_path / "data.txt"
    path.write_bytes(raw)
    message = str(path)
    try:
        for block in read_uci(path, UCILayout(range(columns), [0]), 16):
            assert np.isfinite(block.numbers).all()
    except ArgonautError as fault:
        message = str(fault)
    assert message.startswith(str(path))
    assert "\n" not in message


def test_gzip_and_delimiters_and_decimal_comma(tmp_path):
    path = tmp_path / "data.txt.gz"
    path.write_bytes(gzip.compress("\ufeffcat;0,25;-1e-2;7\ndog ;; 1;2;3\n".encode()))
    (block,) = read_uci(path, UCILayout([1, 2, 3], [0], ";", ","))
    np.testing.assert_array_equal(block.numbers, np.array([[0.25, -0.01, 7], [1, 2, 3]], np.float32))
    assert block.labels[0].tolist() == [b"cat", b"dog"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 a\n1 x a\n", r"d.txt:2: 'x' in column 1, counted from 0; expected a number$"),
        ("1 2 a\n\n1 2 a\n1 2 a b\n", r"d.txt:4: 4 columns; expected 3, as in earlier records"),
        ("1 2 a\n1 2\n", r"d.txt:2: 2 columns; expected 3, as in earlier records"),
        ("1 2\n", r"d.txt:1: 2 columns; expected at least 3, for start and dim"),
        ("1 1,5 a\n", r"d.txt:1: '1,5' in column 1.*; expected a number; set customDecimalPoint or customDelim"),
        ("1 nan a\n", r"d.txt:1: 'nan' in column 1"),
        ("1 1e39 a\n", r"d.txt:1: '1e39' in column 1, counted from 0; expected a number within the range of float32"),
        ("1 1e999 a\n", r"d.txt:1: '1e999' in column 1, counted from 0; expected a number within the range of float32"),
        ("1 1+2 a\n", r"d.txt:1: '1\+2' in column 1"),
        ("1 -inf a\n", r"d.txt:1: '-inf' in column 1"),
        ("1 2 " + "a" * 300 + "\n", r"d.txt:1: a label of 300 bytes; expected at most 256"),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_faults_name_the_line(tmp_path, text, message, block_bytes):
    path = tmp_path / "d.txt"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        list(read_uci(path, UCILayout([0, 1], [2]), block_bytes))


def test_labels_that_are_no_text(tmp_path):
    path = tmp_path / "d.txt"
    path.write_bytes(b"1 a\n1 \xff\n")
    with pytest.raises(FormatError, match=r"d.txt:2: a label is not UTF-8 .*; expected UTF-8"):
        list(read_uci(path, UCILayout([0], [1])))
    path.write_bytes(b"1 a\n1 b\0\n")
    with pytest.raises(FormatError, match="a label holds a zero byte; expected text"):
        list(read_uci(path, UCILayout([0], [1])))


def test_damaged_gzip_is_one_line(tmp_path):
    path = tmp_path / "d.gz"
    path.write_bytes(gzip.compress(b"1 2\n" * 1000)[:40])
    with pytest.raises(FormatError, match=r"d.gz: damaged gzip data .*expected a complete gzip file"):
        list(read_uci(path, UCILayout([0], [])))
