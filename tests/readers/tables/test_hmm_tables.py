"""State map, transitions, cntkmap and look-ahead tables."""

import math

import pytest

from readers.errors import FormatError
from readers.tables import hmm_tables


def put(path, text):
    path.write_text(text)
    return path


def test_brackets_are_taken_off_once():
    assert hmm_tables.strip_brackets("[sil[2]]") == "sil[2]"
    assert hmm_tables.bracket("sil[2]") == "[sil[2]]"
    assert hmm_tables.is_bracketed("[aa_s2]")
    assert not hmm_tables.is_bracketed("aa")
    assert not hmm_tables.is_bracketed("[]")
    with pytest.raises(FormatError, match=r"state 'aa_s2'; expected it in brackets: \[aa_s2\]"):
        hmm_tables.strip_brackets("aa_s2")


def test_state_map(tmp_path):
    path = put(tmp_path / "m", "aa aa_s2 aa_s3 aa_s4\n\nsil sil[2]\n")
    models = {"aa": ("aa_s2", "aa_s3", "aa_s4"), "sil": ("sil[2]",)}
    assert hmm_tables.read_state_map(path) == models
    hmm_tables.write_state_map(tmp_path / "n", models)
    assert hmm_tables.read_state_map(tmp_path / "n") == models


def test_transitions(tmp_path):
    path = put(tmp_path / "t", f"[aa_s2] {math.log(0.9)} {math.log(0.1)}\n[sil[2]] -inf 0\n")
    table = hmm_tables.read_transitions(path)
    assert list(table) == ["aa_s2", "sil[2]"]
    assert table["aa_s2"] == pytest.approx((math.log(0.9), math.log(0.1)))
    assert table["sil[2]"] == (-math.inf, 0.0)
    hmm_tables.write_transitions(tmp_path / "u", table)
    again = hmm_tables.read_transitions(tmp_path / "u")
    assert again["aa_s2"] == pytest.approx(table["aa_s2"], rel=1e-8)
    assert again["sil[2]"] == table["sil[2]"]


def test_cntkmap_and_lookahead(tmp_path):
    assert hmm_tables.read_cntkmap(put(tmp_path / "c", "[aa_s2] 0\n[sil[2]] 5\n")) == {"aa_s2": 0, "sil[2]": 5}
    hmm_tables.write_cntkmap(tmp_path / "d", {"aa_s2": 0, "sil[2]": 5})
    assert (tmp_path / "d").read_text() == "[aa_s2] 0\n[sil[2]] 5\n"
    assert hmm_tables.read_lookahead(put(tmp_path / "l", "aa -0\nb -2.5\n")) == {"aa": 0.0, "b": -2.5}
    hmm_tables.write_lookahead(tmp_path / "k", {"aa": -0.0, "b": -2.5})
    assert hmm_tables.read_lookahead(tmp_path / "k") == {"aa": 0.0, "b": -2.5}


def test_silence(tmp_path):
    hmm_tables.write_silence(tmp_path / "s", "sil", "any-order")
    assert (tmp_path / "s").read_text() == "sil any-order\n"
    assert hmm_tables.read_silence(tmp_path / "s") == ("sil", "any-order")


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        ("silence", "", r"f: 0 lines; expected one line of the form: model topology"),
        ("silence", "a b\na b\n", r"f: 2 lines; expected one line"),
        ("silence", "a b c\n", r"expected one line of the form: model topology"),
        ("state_map", "aa s\nb\n", r"f:2: model 'b' has no states; expected its name and their names"),
        ("state_map", "aa s\naa t\n", r"f:2: 'aa' is repeated; expected each name once"),
        ("state_map", "\n", r"f: no entries; expected lines of the form: name state state"),
        ("transitions", "aa -1 -2\n", r"f:1: 'aa -1 -2'; expected \[state\] ln_self ln_forward"),
        ("transitions", "[aa] -1\n", r"f:1: '\[aa\] -1'; expected \[state\] ln_self ln_forward"),
        ("transitions", "[aa] x 0\n", r"f:1: 'x'; expected a number"),
        ("transitions", "[aa] -1 -1\n", r"f:1: probabilities of \[aa\] sum to 0.7358; expected 1 \(natural logs\)"),
        ("transitions", "[aa] 900 -1\n", r"f:1: probabilities of \[aa\] sum to .*; expected 1"),
        ("transitions", "[aa] -inf 0\n[aa] -inf 0\n", r"f:2: 'aa' is repeated"),
        ("transitions", "", r"f: no entries; expected lines of the form: \[state\] ln_self ln_forward"),
        ("cntkmap", "[aa] 2147483648\n", r"f:1: index 2147483648; expected at most 2147483647"),
        ("cntkmap", "[aa] x\n", r"f:1: '\[aa\] x'; expected \[state\] index, counted from 0"),
        ("cntkmap", "[aa] -1\n", r"f:1: '\[aa\] -1'; expected \[state\] index"),
        ("cntkmap", "aa 1\n", r"f:1: 'aa 1'; expected \[state\] index"),
        ("cntkmap", "[aa] 1\n[aa] 2\n", r"f:2: 'aa' is repeated"),
        ("lookahead", "a b c\n", r"f:1: 'a b c'; expected word score"),
        ("transitions", "[aa] -1e300 0\n", r"f:1: '-1e300'; expected a number from -1e\+30 to 1e\+30"),
        ("lookahead", "a 1e400\n", r"f:1: '1e400'; expected a number from"),
        ("lookahead", "a nan\n", r"f:1: 'nan'; expected a number"),
        ("lookahead", "a 1\na 1\n", r"f:2: 'a' is repeated"),
    ],
)
def test_malformed_tables_are_named_by_line(tmp_path, reader, text, message):
    with pytest.raises(FormatError, match=message):
        getattr(hmm_tables, f"read_{reader}")(put(tmp_path / "f", text))


def test_names_with_blanks_cannot_be_written(tmp_path):
    with pytest.raises(FormatError, match=r"f: name 'a b' cannot be written; expected no blanks in it"):
        hmm_tables.write_state_map(tmp_path / "f", {"a b": ("s",)})
    assert not list(tmp_path.iterdir())
