"""Words of transcripts that a dictionary has in another case."""

import pytest

from readers.corpora.words import WordForms
from readers.dictionaries.case import InCase, case_of


def test_words_are_kept_that_the_dictionary_has_in_another_case():
    for words in ({"MR.", "GO"}, {"MR.", "GO", "ÉTÉ"}):  # of ASCII alone, and not
        assert WordForms(known=InCase(words, "upper")).split("Mr. go, été.") == ("Mr.", "go", "été")


@pytest.mark.parametrize(
    ("words", "case"),
    [
        ("AB C 5 <s> [noise]", "upper"),
        ("ab c", "lower"),
        ("Ab c", "keep"),
        ("<s>", "upper"),
        ("AB " * 99 + "c", "upper"),
    ],
)
def test_the_case_of_a_dictionary_is_that_of_nearly_all_words(words, case):
    assert case_of(words.split()) == case
