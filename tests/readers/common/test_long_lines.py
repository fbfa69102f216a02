"""Text that takes quadratic time, or worse, if a parser looks for the same thing again and again."""

import re

import pytest

from readers.common.names import wildcard
from readers.common.text import is_number
from readers.config.values import parse_float
from readers.errors import ArgonautError
from readers.htk.dictionary import read_dictionary
from readers.htk.edit_script import read_edit_script
from readers.htk.mlf import read_mlf
from readers.htk.mmf import read_mmf
from readers.htk.scp import read_scp
from readers.htk.trees import Question, read_trees
from readers.kaldi.ark import ArkEntry, read_ark_scp
from tests.languages.targets import limited
from tests.readers.test_damage import read_or_refuse

LONG = 300_000


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (read_ark_scp, "u a.ark:" + "[" * LONG),
        (read_ark_scp, "u a.ark:" + "[1" * LONG + "]"),
        (read_ark_scp, "u a.ark" + ":1" * LONG + "["),
        (read_scp, "[" * LONG + "]"),
        (read_scp, "[," * LONG + "]"),
        (read_mmf, '~h "' + '\\"' * LONG),
        (read_mmf, "~h '" + "\\'" * LONG),
        (read_trees, 'QS "' + '\\"' * LONG),
        (read_edit_script, "QS '" + "\\'" * LONG),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else None,
)
def test_a_long_line_takes_linear_time(tmp_path, reader, text):
    (tmp_path / "f").write_text(text)
    with limited(5.0):
        read_or_refuse(reader, tmp_path / "f", text.encode())


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("a.ark:17", ("a.ark", 17, None, None)),
        ("a.ark:17[2:5]", ("a.ark", 17, 2, 5)),
        ("a[1].ark:17[2:5]", ("a[1].ark", 17, 2, 5)),
        ("c:a.ark", ("c:a.ark", 0, None, None)),
        ("c:/d 1/a.ark:0", ("c:/d 1/a.ark", 0, None, None)),
        ("a[1:2]", ("a", 0, 1, 2)),
        ("a[1:2].ark", ("a[1:2].ark", 0, None, None)),
        ("a.ark:1234567890123456789", ("a.ark:1234567890123456789", 0, None, None)),
    ],
)
def test_locations_in_kaldi_scripts(tmp_path, location, expected):
    (tmp_path / "f").write_text(f"u {location}\n")
    file, offset, start, end = expected
    assert read_ark_scp(tmp_path / "f") == [ArkEntry("u", file, offset, start, end, f"{tmp_path / 'f'}", 1)]


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("*", ("", "a", "a/b"), ()),
        ("a", ("a",), ("", "aa", "ba")),
        ("a?c", ("abc", "a.c", "a/c"), ("ac", "abbc")),
        ("*-a+*", ("x-a+y", "-a+", "x-a+-a+"), ("x-a", "a+y")),
        ("a*b*c", ("abc", "axbxc", "abcbc", "abbc"), ("ab", "acb", "abcx")),
        ("*ab", ("ab", "abab", "aab"), ("aba",)),
        ("a**b", ("ab", "acb"), ("a",)),
        ("*.?*", (".a", "x.yz"), (".", "x.")),
        ("[a].*", ("[a].x",), ("a.x",)),
    ],
)
def test_wildcards(pattern, matching, others):
    expression = re.compile(wildcard(pattern), re.DOTALL)
    assert [name for name in (*matching, *others) if expression.fullmatch(name)] == list(matching)


def test_patterns_with_many_wildcards_take_linear_time(tmp_path):
    (tmp_path / "f").write_text('#!MLF!#\n"' + "*a" * 30 + 'b"\nx\n.\n')
    with limited(5.0):
        assert read_mlf(tmp_path / "f").lookup("a" * 5000) is None
        assert not Question("q", ("*a" * 30 + "b",))("a" * 5000)


@pytest.mark.parametrize("name", ['"a', "'a", '"a\\"', '"', "'"])
def test_a_name_whose_quote_is_not_closed_is_refused(tmp_path, name):
    (tmp_path / "f").write_text(f"~h {name}\n<BEGINHMM>\n")
    with pytest.raises(ArgonautError, match=r"f:1: .* after ~h; expected the name of a model"):
        read_mmf(tmp_path / "f")
    (tmp_path / "f").write_text(f'QS {name}\n{{ "a" }}\n')
    with pytest.raises(ArgonautError, match=r"f:1: .*; expected the name of a question"):
        read_trees(tmp_path / "f")


def test_numbers_are_recognised_in_linear_time():
    with limited(5.0):
        for text in ("1" * LONG + "x", "1" * LONG + ".x", "." + "1" * LONG + "e", "1e" + "1" * LONG + "-"):
            assert not is_number(text)
            with pytest.raises(ArgonautError):
                parse_float(text, "f:1", "v")


def test_long_numbers_and_long_messages(tmp_path):
    (tmp_path / "f").write_text('#!MLF!#\n"*/u.lab"\n' + "0" * 5000 + " 1 a\n.\n")
    assert read_mlf(tmp_path / "f")["u"][0].start == 0
    (tmp_path / "f").write_text('A "' + "b" * LONG)
    with pytest.raises(ArgonautError) as fault:
        read_dictionary(tmp_path / "f")
    assert str(fault.value).startswith(f"{tmp_path / 'f'}:1: quote")
    assert len(str(fault.value)) < 5000
