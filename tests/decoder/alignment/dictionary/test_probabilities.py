"""Probabilities of pronunciations and silences against the formulas of Chen et al., 2015, worked out by hand."""

import pytest

from decoder.alignment.dictionary import DictionaryCounts, SpokenUtterance
from readers.htk.dictionary import Pronunciation

DICTIONARY = [
    Pronunciation("<s>", "", None, ("sil",)),
    Pronunciation("A", None, 0.3, ("a",)),
    Pronunciation("A", None, None, ("e", "sp")),
    Pronunciation("B", None, None, ("b",)),
    Pronunciation("C", None, 0.2, ("c",)),
]
A, E, B = ("a", ("a",)), ("a", ("e",)), ("b", ("b",))


def counts(*utterances):
    counted = DictionaryCounts(DICTIONARY, ("sil", "sp"))
    counted.add(SpokenUtterance(tuple(words), tuple(pauses)) for words, pauses in utterances)
    return counted


UTTERANCES = [
    ([A, B], (True, True, True)),
    ([A, B], (True, True, True)),
    ([A, B], (True, False, False)),
    ([E, B], (True, False, True)),
]


def test_the_most_frequent_pronunciation_of_a_word_has_probability_1():
    entries = {(entry.word, entry.phones): entry.probability for entry in counts(*UTTERANCES).estimate("sil")}
    assert entries["A", ("a",)] == 1.0
    assert entries["A", ("e", "sp")] == (1 + 1) / (3 + 1)
    assert entries["B", ("b",)] == 1.0
    assert entries["C", ("c",)] == 1.0  # never spoken


def test_silence_after_and_before():
    entries = {entry.phones: entry.silence for entry in counts(*UTTERANCES).estimate("sil") if entry.word[0] != "<"}
    # 12 places, 9 of them silent: P(s) = 0.75, P(s | <s>) = (4 + 1.5) / (4 + 2) = 0.92
    assert entries["a",].after == pytest.approx(round((2 + 2 * 0.75) / (3 + 2), 2))
    assert entries["e", "sp"].after == pytest.approx(round(2 * 0.75 / (1 + 2), 2))
    assert entries["b",].after == pytest.approx(round((3 + 2 * 0.75) / (4 + 2), 2))
    assert entries["c",] == (0.75, 1.0, 1.0)
    assert entries["a",][1:] == (round((3 + 2) / (3 * 0.92 + 2), 2), round((0 + 2) / (3 * 0.08 + 2), 2))
    # before B: three times A with P(s) = 0.7, once E with 0.5
    assert entries["b",][1:] == (round((2 + 2) / (2.6 + 2), 2), round((2 + 2) / (1.4 + 2), 2))


def test_beginning_and_end_of_utterances():
    *_, start, end = counts(*UTTERANCES).estimate("pau")
    assert (start.word, start.phones, start.silence.after) == ("<s>", ("pau",), 0.92)
    assert end.silence == (0.75, round((3 + 2) / (4 * 0.75 + 2), 2), round((1 + 2) / (4 * 0.25 + 2), 2))


def test_probabilities_are_never_0_or_1():
    entries = counts(*([([A, B], (True, True, True))] * 1000)).estimate("sil")
    assert [entry.silence.after for entry in entries] == [0.99] * 6


def test_what_is_not_known_of_an_end_is_not_counted():
    unknown = counts(*UTTERANCES, ([A], (True, None))).estimate("sil")
    known = counts(*UTTERANCES, ([A], (True, False))).estimate("sil")
    assert unknown[0].silence.after == 0.71  # (2 + 2 * 10 / 13) / (3 + 2)
    assert known[0].silence.after == 0.57  # (2 + 2 * 10 / 14) / (4 + 2)


def test_variants_of_spoken_words_and_pronunciations_that_the_dictionary_lacks():
    counted = counts(*UTTERANCES, ([("a", ("o",)), ("d", ("d",))], (True, False, True)))
    assert counted.variants() == [("A", ("a",), 3), ("A", ("e",), 1)]
    assert counted.unknown == {("A", ("o",)): 1, ("D", ("d",)): 1}


def test_without_utterances_nothing_is_preferred():
    assert {entry.silence for entry in counts().estimate("sil")[:4]} == {(0.5, 1.0, 1.0)}


def test_words_are_counted_as_they_are_printed():
    entries = [Pronunciation("A", "alpha", None, ("a",)), Pronunciation("A", "alpha", None, ("e",))]
    counts = DictionaryCounts(entries, ("sil",))
    counts.add([SpokenUtterance((("alpha", ("e",)), ("alpha", ("e",)), ("alpha", ("a",))), (True, None, None, True))])
    assert not counts.unknown
    assert [entry.probability for entry in counts.estimate("sil")[:2]] == pytest.approx([2 / 3, 1])
