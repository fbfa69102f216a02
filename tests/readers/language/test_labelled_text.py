"""Labelled sentences in three forms: files laid out by hand, a message for each fault, and round trips."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers.errors import FormatError
from readers.language.labelled_text import is_ctf, read_columns, read_ctf, read_parallel, read_tab_lines

WORD = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=6)
SENTENCES = st.lists(st.lists(st.tuples(WORD, WORD), min_size=1, max_size=5), max_size=5)


def pairs(sentences):
    return [[(word, label) for _, word, label in sentence] for sentence in sentences]


@pytest.mark.parametrize(
    ("text", "ends", "expected"),
    [
        ("a A\nb B\n\nc C\n", ("", ""), [[(1, "a", "A"), (2, "b", "B")], [(4, "c", "C")]]),
        ("a x y A\n\n\n\n b\tB ", ("", ""), [[(1, "a", "A")], [(5, "b", "B")]]),
        ("a A\nEOS O\nb B\nEOS O\n", ("EOS", ""), [[(1, "a", "A"), (2, "EOS", "O")], [(3, "b", "B"), (4, "EOS", "O")]]),
        ("a A\nb O\nc C\n", ("", "O"), [[(1, "a", "A"), (2, "b", "O")], [(3, "c", "C")]]),
        ("a A\nb O\nEOS O\n", ("EOS", "O"), [[(1, "a", "A"), (2, "b", "O")], [(3, "EOS", "O")]]),
        ("", ("", ""), []),
    ],
)
def test_columns(tmp_path, text, ends, expected):
    (tmp_path / "text").write_text(text)
    assert read_columns(tmp_path / "text", *ends) == (expected, [])


def test_lines_of_one_column_are_told(tmp_path):
    (tmp_path / "text").write_text("a A\nalone\nb B\n")
    assert read_columns(tmp_path / "text") == ([[(1, "a", "A"), (3, "b", "B")]], [(2, "alone")])


def test_ctf(tmp_path):
    lines = [
        "7 |S0 1:1 |# a |S1 2:1 |# x |S2 3:1 |# A",
        "|S0 1:1 |# b |S2 3:1 |# B",
        "",
        "8\t|S0 1:1 |# c |S2 1:1 |# C",
    ]
    (tmp_path / "text").write_text("\n".join(["", *lines]))
    assert is_ctf(tmp_path / "text")
    assert read_ctf(tmp_path / "text") == [[(2, "a", "A"), (3, "b", "B")], [(5, "c", "C")]]
    for line in ("9 |S0 1:1 |# a", "9 |S0 1:1 |# a |S2 1:1 |#", "9 a A"):
        (tmp_path / "text").write_text(f"{lines[0]}\n{line}\n")
        with pytest.raises(FormatError, match=r"text:2: .*; expected comments with word and label"):
            read_ctf(tmp_path / "text")
    for text in ("", "a A\n", "a b\tA B\n", "19 O\n", "| O\n"):
        (tmp_path / "text").write_text(text)
        assert not is_ctf(tmp_path / "text")


@given(sentences=SENTENCES)
def test_every_form_gives_what_was_written(tmp_path_factory, sentences):
    directory = tmp_path_factory.mktemp("forms")
    columns = "\n".join("".join(f"{word} {label}\n" for word, label in sentence) for sentence in sentences)
    (directory / "columns").write_text(columns)
    assert pairs(read_columns(directory / "columns", "no end")[0]) == sentences
    words = [" ".join(word for word, _ in sentence) for sentence in sentences]
    labels = [" ".join(label for _, label in sentence) for sentence in sentences]
    (directory / "tabs").write_text("".join(f"{left}\t{right}\n" for left, right in zip(words, labels)))
    assert pairs(read_tab_lines(directory / "tabs")) == sentences
    (directory / "words").write_text("".join(f"{line}\n" for line in words))
    (directory / "labels").write_text("".join(f"{line}\n" for line in labels))
    assert pairs(read_parallel(directory / "words", directory / "labels")) == sentences


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ("a b\n", "O\n", r"labels:1: 1 labels; expected 2, one for each word"),
        ("a\n\n", "O\nO\n", r"labels:2: 1 labels; expected 0"),
        ("a\nb\n", "O\n", r"labels: 1 lines; expected 2, as in words"),
    ],
)
def test_faults_of_parallel_files(tmp_path, left, right, message):
    (tmp_path / "words").write_text(left)
    (tmp_path / "labels").write_text(right)
    with pytest.raises(FormatError, match=message):
        read_parallel(tmp_path / "words", tmp_path / "labels")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\tO O\nc O\n", r"tabs:2: 'c O'; expected words, a tab and their labels"),
        ("a b\tO\n", r"tabs:1: 1 labels; expected 2"),
        ("\tO\n", r"tabs:1: 1 labels; expected 0"),
    ],
)
def test_faults_of_tab_lines(tmp_path, text, message):
    (tmp_path / "tabs").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_tab_lines(tmp_path / "tabs")
