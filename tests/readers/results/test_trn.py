"""Transcripts in trn format and in that of Kaldi's text files."""

import pytest

from readers.errors import FormatError
from readers.results.trn import is_trn, read_named_lines, read_trn


@pytest.mark.parametrize(
    ("lines", "known", "expected"),
    [
        (["a b (u1)", "(u2)", "", "  "], (), True),
        (["a (u1)", "b (u2)", "c"], (), True),  # most of the lines
        (["a (u1)", "b"], (), False),
        (["a (u1)", "b", "c"], (), False),
        (["a (u1)", "b", "c"], ("u1",), True),  # one of them with a known id
        (["a (u1)", "b (u2)", "c", "d", "e"], ("u2",), True),
        (["a (u1)", "b", "c"], ("u2",), False),
        (["u1 a", "u2 b"], ("u1",), False),
        (["a (u 1)"], (), False),
        ([], ("u1",), False),
        (["", " "], (), False),
    ],
)
def test_most_lines_or_a_known_id_make_a_trn(lines, known, expected):
    assert is_trn(lines, known) is expected


def test_words_are_read_without_marks(tmp_path):
    (tmp_path / "a").write_text("<s> A (B) C </s> (dir/u1)\n\n (u2)\n")
    assert read_trn(tmp_path / "a") == {"dir/u1": ["A", "(B)", "C"], "u2": []}
    assert read_trn(tmp_path / "a", marks=("A",))["dir/u1"] == ["<s>", "(B)", "C", "</s>"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A (u1)\nB\n", r"a:2: "),
        ("A (u1)\n\nB (u1)\n", r"a:3: utterance 'u1' is already at line 1; expected each once"),
        ("{ A / B } (u1)\n", r"a:1: alternatives .* expected a single word"),
        ("\n \n", r"a: no transcripts; expected lines `word word ... \(utterance\)`"),
    ],
)
def test_faults_of_a_trn_name_their_line(tmp_path, text, message):
    (tmp_path / "a").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_trn(tmp_path / "a")


def test_lines_that_begin_with_their_name(tmp_path):
    (tmp_path / "a").write_text("u1 A B\nu2\n")
    assert read_named_lines(tmp_path / "a") == {"u1": ["A", "B"], "u2": []}
    (tmp_path / "a").write_text("u1 A\nu1 B\n")
    with pytest.raises(FormatError, match=r"a:2: utterance 'u1' is repeated; expected each once"):
        read_named_lines(tmp_path / "a")
