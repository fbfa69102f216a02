"""The compiled way to read ARPA files against the plain one, which reads line by line."""

import math
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from readers.common.text import decode_lines
from readers.errors import FormatError
from readers.language import arpa as arpa_reader
from readers.language.arpa_columns import read_columns
from readers.language.arpa_kernels import _number
from tests.readers.language.test_arpa import SMALL, random_model, write_arpa


def fast(raw):
    return read_columns(raw, lambda lines: arpa_reader._read_header(lines, "f"))


def line_by_line(raw):
    return arpa_reader._read_line_by_line(decode_lines(raw, "f"), "f")


def check_same(raw):
    """Both ways give the same model, to the last bit."""
    found, expected = fast(raw), line_by_line(raw)
    assert found is not None
    assert found[0] == expected.vocabulary
    for columns, order in zip(found[1], expected.orders, strict=True):
        for one, two in zip(columns, (order.words, order.logprob, order.backoff)):
            assert one.dtype == two.dtype
            np.testing.assert_array_equal(one, two)


FORMS = {
    "plain": SMALL,
    "no end": SMALL[: SMALL.index("\\end\\")],
    "no last line break": SMALL[: SMALL.index("\\end\\")].rstrip("\n"),
    "blanks": re.sub(r"[ \t](?=\S)", " \t  ", SMALL).replace("\n-0", "\n \t-0").replace("\n", " \n"),
    "form feeds and others": SMALL.replace("\t", "\x0b\x1c \x1f"),
    "windows": SMALL.replace("\n", "\r\n"),
    "old macintosh": SMALL.replace("\n", "\r"),
    "byte order mark": "\ufeff" + SMALL,
    "numbers": SMALL.replace("-0.5\ta", "-5.000e-01\ta").replace("-0.75", "-.75").replace("-1.0", "-1."),
    "minus infinity": SMALL.replace("-0.5\ta", "-inf\ta").replace("-0.25", "-INFINITY"),
    "many digits": SMALL.replace("-0.5\ta", "-0.50000000000000001\ta").replace("-0.25", "-0.12345678901234567"),
    "names": SMALL.replace("a", "été").replace("-0.75\t\\b", "-0.75\t日本"),
    "no trigrams": SMALL.replace("ngram 3=1", "ngram 3=0").replace("-0.05 <s> a \\b", ""),
}
FORMS["names"] = SMALL.replace(" a", " été").replace("\ta", "\tété").replace("\\b", "日本")


@pytest.mark.parametrize("form", FORMS)
def test_forms_that_are_right(form):
    check_same(FORMS[form].encode())


@pytest.mark.parametrize("digits", [3, 7, 17])
@pytest.mark.parametrize("seed", range(10))
def test_random_models(tmp_path, seed, digits):
    write_arpa(tmp_path / "a", random_model(seed, 9 + 40 * seed, 4, 200), digits)
    check_same((tmp_path / "a").read_bytes())


def test_more_rows_than_go_through_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("readers.language.arpa_columns._ROWS_AT_ONCE", 7)
    monkeypatch.setattr("readers.language.arpa_columns._DECODED_AT_ONCE", 5)
    write_arpa(tmp_path / "a", random_model(1, 30, 3, 100), 17)
    check_same((tmp_path / "a").read_bytes())


NOT_PLAIN = {
    "word twice": SMALL.replace("\t\\b", "\ta", 1),
    "unknown word": SMALL.replace("a \\b\n-0.4", "a c\n-0.4"),
    "too few fields": SMALL.replace("-0.4 a </s>", "-0.4 a"),
    "too many fields": SMALL.replace("-0.3\n", "-0.3 -0.3\n"),
    "fewer than announced": SMALL.replace("ngram 2=3", "ngram 2=4"),
    "more than announced": SMALL.replace("ngram 2=3", "ngram 2=2"),
    "a section too few": SMALL.replace("\\3-grams:", "\\4-grams:"),
    "a section too many": SMALL.replace("\\end\\", "\\4-grams:"),
    "an odd line at the end": SMALL.replace("\\end\\", "\\over\\"),
    "no number": SMALL.replace("-0.75", "-0.7x"),
    "a number of Python's alone": SMALL.replace("-0.75", "-0_75"),
    "not a number": SMALL.replace("-0.25", "nan"),
    "a blank beyond ASCII": SMALL.replace("-0.4 a", "-0.4\u00a0a"),
    "no header": SMALL.replace("\\data\\", ""),
    "text after the counts": SMALL.replace("ngram 3=1\n", "ngram 3=1\nngrams\n"),
    "more than the file can hold": SMALL.replace("ngram 3=1", "ngram 3=999999999999999"),
    "no text": SMALL.replace("whatever", "\0"),
    "no first section": SMALL.replace("\\1-grams:", "\\1-gram:"),
}


@pytest.mark.parametrize("fault", NOT_PLAIN)
def test_what_is_not_plain_is_left_to_the_other_way(fault):
    assert fast(NOT_PLAIN[fault].encode()) is None
    assert fast(b"\xff" + SMALL.encode()) is None


@pytest.mark.parametrize("fault", ["-0.4 a \\b", "0.1 a </s>"])
def test_what_only_the_numbers_show_is_found(tmp_path, monkeypatch, fault):
    """Read fast, but refused: an n-gram twice, a probability above one."""
    monkeypatch.setattr(arpa_reader, "LEAST_SIZE", 0)
    (tmp_path / "a").write_text(SMALL.replace("-0.4 a </s>", fault))
    assert fast((tmp_path / "a").read_bytes()) is not None
    with pytest.raises(FormatError, match=r"a:19: (n-gram 'a \\\\b' is already at line 18|log10 probability 0.1)"):
        arpa_reader.read_arpa(tmp_path / "a")


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.floats(-99, 0).map(lambda x: f"{x:.7g}"),
        st.from_regex(r"[-+]?[0-9]{0,18}\.?[0-9]{0,18}([eE][-+]?[0-9]{1,5})?", fullmatch=True),
        st.from_regex(r"[-+.0-9eE_x]{1,8}", fullmatch=True),
    )
)
@example("-0")
@example("9007199254740993")
@example("1e23")
@example("-.")
@example("1e")
@example("+.5e-0022")
def test_numbers_are_pythons_or_left_to_it(text):
    raw = np.frombuffer(text.encode() + b"\n", np.uint8)
    found = float(_number(raw, 0, len(text))) if text else math.nan
    if not math.isnan(found):
        assert np.float64(found).tobytes() == np.float64(float(text)).tobytes()


def test_numbers_as_toolkits_write_them_are_not_left_to_python():
    for text in ("-1.234567", "-99", "0", "-0.3010300", "-1.5e-05", "-6.35e-07"):
        raw = np.frombuffer(text.encode() + b"\n", np.uint8)
        assert _number(raw, 0, len(text)) == float(text)


@settings(max_examples=200, deadline=None)
@given(
    place=st.integers(0, len(SMALL) - 1), put=st.sampled_from(["", " ", "\n", "-", "a", "\\", "0", "\t1", "é", "\x1c"])
)
def test_damage_gives_the_same_or_is_left_to_the_other_way(place, put):
    raw = (SMALL[:place] + put + SMALL[place + 1 :]).encode()
    try:
        line_by_line(raw)
    except FormatError:
        found = fast(raw)
        assert found is None or not all(map(arpa_reader._sound, found[1]))
    else:
        if fast(raw) is not None:
            check_same(raw)
