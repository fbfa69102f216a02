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
    assert guesses.without == [("b4", "letters '4' are not in the model; expected numbers as words")]
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


NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()


@pytest.fixture(scope="module")
def english():
    names = [*NUMBERS, "twenty", "first", "mp", "up"]
    return G2P.train([Pronunciation(name, None, None, tuple(name.upper())) for name in names], 5, passes=3)


@pytest.mark.parametrize(
    ("word", "phones"),
    [("24", "TWENTYFOUR"), ("21st", "TWENTYFIRST"), ("mp3", "MPTHREE"), ("7up", "SEVENUP")],
)
def test_digits_are_read_by_rules(english, word, phones):
    ((entry,), without) = vars(complete_dictionary([], [word], english)).values()
    assert "".join(entry.phones) == phones
    assert without == []


def test_numbers_have_the_pronunciations_of_the_dictionary(english):
    spoken = [Pronunciation("TWENTY", None, None, ("X",)), Pronunciation("TWENTY", None, None, ("Y",))]
    guesses = complete_dictionary(spoken, ["24", "four"], english, 3)
    assert {entry.phones[0] for entry in guesses.entries if entry.word == "24"} == {"X"}
    of_24 = [entry.probability for entry in guesses.entries if entry.word == "24"]
    of_four = [entry.probability for entry in guesses.entries if entry.word == "four"]
    assert of_24 == of_four


def test_digits_in_another_language_are_unknown_letters(model, english):
    assert english.language == "english"
    assert model.language is None
    reason = "letters '2', '4' are not in the model; expected numbers as words"
    assert complete_dictionary([], ["24"], model).without == [("24", reason)]


def test_words_that_need_other_phones_or_a_model(model):
    first = model.pronunciations("bame")[0][0][0]
    without = complete_dictionary([], ["bame"], model, phones=set(model.phones) - {first}).without
    assert without == [("bame", f"there is no model of the phone '{first}' of its guess")]
    reason = "no dictionary has it, and there is no pronunciation model"
    assert complete_dictionary(entries(1), ["<s>", entries(1)[0].word, "x"], None).without == [("x", reason)]


def test_a_model_may_be_given_by_its_file(model, tmp_path):
    model.save(tmp_path / "m.g2p")
    assert complete_dictionary([], ["bame"], tmp_path / "m.g2p") == complete_dictionary([], ["bame"], model)


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


def test_a_word_with_a_digit_has_parts_of_the_dictionary_in_any_case(english):
    entries = [Pronunciation("MP", None, None, ("X",)), Pronunciation("THREE", None, None, ("Y",))]
    for word in ("MP3", "mp3"):
        ((entry,), without) = vars(complete_dictionary(entries, [word], english)).values()
        assert (entry.phones, without) == (("X", "Y"), [])
