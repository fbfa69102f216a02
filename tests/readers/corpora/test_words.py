"""Words of transcripts that a dictionary has in another case."""

from readers.corpora.words import WordForms
from readers.dictionaries.case import InCase


def test_words_are_kept_that_the_dictionary_has_in_another_case():
    for words in ({"MR.", "GO"}, {"MR.", "GO", "ÉTÉ"}):  # of ASCII alone, and not
        assert WordForms(known=InCase(words, "upper")).split("Mr. go, été.") == ("Mr.", "go", "été")
