"""Lists of new words."""

import pytest

from readers.errors import FormatError
from readers.language import read_new_words
from readers.language.new_words import NewWord


def test_words_have_several_pronunciations_or_none(tmp_path):
    (tmp_path / "words").write_text("# names\nTALLINN T AA L IH N\n\nOSLO\nTALLINN t a\nOSLO\nTALLINN t a\n")
    expected = {"TALLINN": NewWord([("T", "AA", "L", "IH", "N"), ("t", "a")]), "OSLO": NewWord()}
    assert read_new_words(tmp_path / "words") == expected


def test_words_have_weights_and_classes(tmp_path):
    (tmp_path / "words").write_text("OSLO 0.5\n[JOHN]\nANNA 3 AE N AH\nANNA A N A\n[<place>]\nTALLINN\n")
    assert read_new_words(tmp_path / "words", "x") == {
        "OSLO": NewWord([], 0.5, "x"),
        "ANNA": NewWord([("AE", "N", "AH"), ("A", "N", "A")], 3.0, "JOHN"),
        "TALLINN": NewWord([], None, "<place>"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ANNA 0 A\n", "words:1: weight 0; expected a number above 0"),
        ("ANNA -inf\n", "words:1: weight -inf; expected a number above 0"),
        ("ANNA 2 A\nANNA 3 B\n", "words:2: weight 3, before 2; expected one for each word"),
        ("[JOHN]\nANNA\n[MARY]\nANNA\n", "words:4: 'ANNA' is already in class 'JOHN'; expected it in one class"),
        ("[JOHN]\n", "words: no words; expected one per line"),
    ],
)
def test_faults_are_named(tmp_path, text, message):
    (tmp_path / "words").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_new_words(tmp_path / "words")
