"""When words of a lattice begin: after the silence before them, whichever way the lattice says what silence is."""

import dataclasses

import numpy as np
import pytest

from decoder.lattices.consensus import consensus
from decoder.lattices.posteriors import confident_words
from decoder.lattices.times import word_begins
from readers.results.lattice import NULL_WORD
from tests.decoder.lattices.small_lattices import lattice_of, with_segments


def one_word(*segments, word="a", silence=None):
    """A link of a word from 1 s to 2 s with segments (label, seconds)."""
    links = [(0, 1, NULL_WORD, 0, 0), (1, 2, word, 0, 0)]
    lattice = lattice_of(links, [0.0, 1.0, 2.0], scales={}, silence=silence)
    return with_segments(lattice, [None, [(label, seconds, None) for label, seconds in segments]])


@pytest.mark.parametrize(
    ("segments", "begin"),
    [
        ([], 1.0),
        ([("a_s2", 0.5), ("a_s3", 0.5)], 1.0),
        ([("sil[2]", 0.25), ("sil[4]", 0.25), ("a_s2", 0.25), ("sil[2]", 0.25)], 1.5),
        ([("sil_s2_1", 0.25), ("a_s2", 0.75)], 1.25),
        ([("sp", 0.125), ("sil", 0.125), ("a", 0.75)], 1.25),
        ([("silk", 0.25), ("a", 0.75)], 1.0),
        ([("sil", None), ("a", None)], 1.0),
        ([("sil", 3.0), ("a", 0.0)], 2.0),  # segments that do not fit the link
    ],
)
def test_a_word_begins_after_the_silence_before_it(segments, begin):
    assert word_begins(one_word(*segments)).tolist() == [0.0, begin]


def test_the_lattice_says_what_silence_is():
    segments = [("noise_a", 0.25), ("sil[2]", 0.25), ("a_s2", 0.5)]
    assert word_begins(one_word(*segments, silence={"noise": ["noise_a", "noise_b"]}))[1] == 1.25
    assert word_begins(one_word(*segments, silence={"noise": ["noise_a"], "sil": ["sil[2]"]}))[1] == 1.5
    assert word_begins(one_word(*segments, silence={}))[1] == 1.0


def test_a_word_of_nothing_but_silence_begins_with_the_last_model_of_it():
    segments = [("sil[2]", 0.25), ("cough[2]", 0.25), ("cough[3]", 0.5)]
    silence = {"sil": ["sil[2]"], "cough": ["cough[2]", "cough[3]"]}
    assert word_begins(one_word(*segments, silence=silence))[1] == 1.25
    assert word_begins(one_word(("sil[2]", 0.5), ("sil[4]", 0.5)))[1] == 1.0


@pytest.mark.parametrize("word", [NULL_WORD, "<s>", "</s>"])
def test_silence_that_is_before_no_word_stays(word):
    assert word_begins(one_word(("sil", 0.5), ("a", 0.5), word=word))[1] == 1.0


def test_words_with_confidences_and_words_of_a_consensus_begin_after_silence():
    lattice = one_word(("sil", 0.5), ("a", 0.5))
    for (word,) in (confident_words(lattice), consensus(lattice).words):
        assert (word.text, word.start, word.end) == ("a", 1.5, 2.0)


def test_without_times_there_are_none():
    lattice = one_word(("sil", 0.5), ("a", 0.5))
    assert np.isnan(word_begins(dataclasses.replace(lattice, time=np.full(3, np.nan)))).all()
