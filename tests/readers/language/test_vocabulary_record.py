"""The vocabularies in the metadata of models: as JSON and back, comparisons, damaged entries."""

import json

import pytest

from readers.errors import FormatError
from readers.language.vocabulary import VocabularyWord
from readers.language.vocabulary_record import VocabularyRecord, parse_vocabularies, vocabularies_as_json

WORDS = [VocabularyWord("</s>", 9, 0), VocabularyWord("the", 7, 0), VocabularyWord("cat", 2, 1)]
ENTRY = {"inputs": ["features"], "words": ["a", "b"], "counts": [2, 1], "classes": [0, 1]}


def test_as_json_and_back():
    classed, plain = VocabularyRecord.of_words(WORDS), VocabularyRecord(("x", "y"))
    records = {"features": classed, "encoder.features": plain, "labels": VocabularyRecord.of_words(WORDS)}
    value = json.loads(json.dumps(vocabularies_as_json(records)))
    assert [entry["inputs"] for entry in value] == [["features", "labels"], ["encoder.features"]]
    assert value[1] == {"inputs": ["encoder.features"], "words": ["x", "y"]}
    assert parse_vocabularies(value, records) == records
    assert parse_vocabularies(value)["labels"].entries() == WORDS
    assert plain.entries() == [VocabularyWord("x", 0, 0), VocabularyWord("y", 0, 0)]
    assert (classed.text(), plain.text()) == ("3 words in 2 classes", "2 words")


def test_counts_and_classes_that_are_unknown_are_left_out():
    assert VocabularyRecord.of_words([VocabularyWord("a", 0, 0)]).counts == ()
    assert VocabularyRecord.of_words(WORDS, with_classes=False).classes == ()


@pytest.mark.parametrize(
    ("words", "classes", "message"),
    [
        (("a", "b", "c"), (0, 0, 1), ""),
        (("a", "b"), (0, 0), ""),
        (("a", "b", "c"), (), ""),
        (("a", "c", "b"), (0, 0, 1), "reader: word 1 is 'c'; expected 'b', as trained"),
        (("a", "b", "c", "d"), (0, 0, 1, 1), "reader: 4 words; expected 3, as trained"),
        (("a", "b", "c"), (0, 1, 1), "reader: word 'b' is in class 1; expected class 0, as trained"),
    ],
)
def test_mismatch(words, classes, message):
    expected = VocabularyRecord(("a", "b", "c"), (), (0, 0, 1))
    assert VocabularyRecord(words, (), classes).mismatch("reader", expected, "as trained") == message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "vocabularies: dict; expected a list"),
        ([1], r"vocabularies\[0\]: int; expected a dict"),
        ([{}], r"vocabularies\[0\]: words: NoneType; expected a list"),
        ([ENTRY | {"words": []}], "expected different words without blanks, at least one"),
        ([ENTRY | {"words": ["a", "a"]}], "expected different words without blanks"),
        ([ENTRY | {"words": ["a", "b c"]}], "expected different words without blanks"),
        ([ENTRY | {"words": ["a", 1]}], "word: int; expected a str"),
        ([ENTRY | {"counts": [1]}], "1 counts; expected 2, one for each word"),
        ([ENTRY | {"counts": [1, -1]}], "counts; expected numbers >= 0"),
        ([ENTRY | {"classes": [1, True]}], "classes; expected numbers >= 0"),
        ([ENTRY | {"classes": [1, 0]}], "classes; expected the words of each class together"),
        ([ENTRY | {"inputs": ["labels"]}], "input 'labels'; expected inputs of the network, each once"),
        ([ENTRY, ENTRY], r"vocabularies\[1\]: input 'features'; expected inputs of the network, each once"),
        ([ENTRY | {"inputs": [[]]}], "expected inputs of the network"),
        ([{"words": ["a"]}], "inputs: NoneType; expected a list"),
    ],
)
def test_damaged_entries(value, message):
    with pytest.raises(FormatError, match=message):
        parse_vocabularies(value, ["features"])
