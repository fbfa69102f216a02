"""Guesses for the words that a dictionary lacks, and how well a model does on held-out words."""

import pytest

from decoder.g2p import G2P, complete_dictionary, count_errors, hold_out
from readers.errors import FormatError
from readers.htk.dictionary import Pronunciation, read_dictionary
from tests.decoder.g2p.words import entries


@pytest.fixture(scope="module")
def model():
    return G2P.train(entries(60), 3, passes=5)


def test_missing_words_are_guessed_the_most_doubtful_first(model, tmp_path):
    guesses = complete_dictionary(entries(5), [entries(5)[0].word, "xotu", "bame", "xotu", "b4"], model, 2)
    assert guesses.words == ["bame", "xotu"]
    assert guesses.without == [("b4", "letters '4' are not in the model")]
    best = [entry.probability for word in guesses.words for entry in guesses.entries if entry.word == word]
    assert min(best) > 0
    guesses.write(tmp_path / "guessed.dict")
    assert read_dictionary(tmp_path / "guessed.dict") == guesses.entries
    assert guesses.summary("guessed.dict") == "2 words guessed, see guessed.dict"
    used = {entry.word: entry.probability for entry in reversed(guesses.for_decoding())}
    assert used["bame"] == 1.0


def test_a_single_guess_costs_nothing_in_decoding(model):
    guesses = complete_dictionary([], ["bame"], model)
    assert guesses.entries[0].probability < 1
    assert [entry.probability for entry in guesses.for_decoding()] == [None]
    assert guesses.summary("g").startswith("1 word guessed")


def test_every_tenth_word_in_sorted_order_is_held_out():
    made = [Pronunciation(word, None, None, (word,)) for word in "cabdCA"]
    kept, held = hold_out(made, 2)
    assert [entry.word for entry in held] == ["b", "d"]
    assert [entry.word for entry in kept] == ["c", "a", "C", "A"]
    with pytest.raises(FormatError, match="every word number 9 of 4 is held out; expected 2 to 4"):
        hold_out(made, 9)


def test_the_closest_pronunciation_counts(model):
    right = model.pronunciations("xotu")[0][0]
    made = [("xotu", ("K",)), ("xotu", (*right, "Z")), ("ba", model.pronunciations("ba")[0][0]), ("4", ("F", "AO"))]
    score = count_errors(model, [Pronunciation(word, None, None, phones) for word, phones in made])
    assert (score.num_errors, score.num_words) == (3, len(right) + 1 + 2 + 2)
    assert (score.num_wrong_sentences, score.num_sentences) == (2, 3)
