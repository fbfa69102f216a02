"""Slot scores: phrases and rates worked out by hand, and conlleval's own table of tag pairs as another way to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers.errors import FormatError
from recipes.understanding.conlleval import Phrase, Rates, Score, phrases, score


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("", []),
        ("O O", []),
        ("O B-x O", [(1, 1, "x")]),
        ("B-x I-x I-x", [(0, 2, "x")]),  # to the end of the sentence
        ("B-x B-x", [(0, 0, "x"), (1, 1, "x")]),  # two of a type side by side
        ("B-x I-x B-x I-x", [(0, 1, "x"), (2, 3, "x")]),
        ("I-x", [(0, 0, "x")]),  # no B- at the beginning of a sentence
        ("O I-x I-x O", [(1, 2, "x")]),  # no B- behind O
        ("B-x I-y", [(0, 0, "x"), (1, 1, "y")]),  # another type begins without a B-
        ("I-x I-y I-y", [(0, 0, "x"), (1, 2, "y")]),
        ("B-x I-y I-x", [(0, 0, "x"), (1, 1, "y"), (2, 2, "x")]),
        ("B-x O I-x", [(0, 0, "x"), (2, 2, "x")]),  # a gap parts them
        ("I-x B-x", [(0, 0, "x"), (1, 1, "x")]),
        ("B-a-b I-a-b I-a", [(0, 1, "a-b"), (2, 2, "a")]),  # the type is all that follows the first dash
    ],
)
def test_phrases(labels, expected):
    assert phrases(labels.split()) == [Phrase(*one) for one in expected]


@pytest.mark.parametrize(
    ("reference", "hypothesis", "counts", "right_words"),
    [
        ("B-x I-x O", "B-x I-x O", (1, 1, 1), 3),
        ("B-x I-x O", "B-x O O", (1, 1, 0), 2),  # too short
        ("B-x I-x O", "B-x I-x I-x", (1, 1, 0), 2),  # too long
        ("B-x I-x O", "O I-x O", (1, 1, 0), 2),  # begins late
        ("B-x I-x O", "I-x I-x O", (1, 1, 1), 2),  # a wrong label, yet the same phrase
        ("B-x I-x O", "B-x I-y O", (1, 2, 0), 2),
        ("B-x I-x", "B-x B-x", (1, 2, 0), 1),
        ("B-x B-x", "B-x I-x", (2, 1, 0), 1),
        ("B-x B-x", "I-x B-x", (2, 2, 2), 1),
        ("B-x I-x", "B-y I-y", (1, 1, 0), 0),  # the type
        ("O O", "I-x O", (0, 1, 0), 1),
        ("B-x O B-y", "O O O", (2, 0, 0), 1),
        ("I-x O", "B-x O", (1, 1, 1), 1),
    ],
)
def test_counts_of_one_sentence(reference, hypothesis, counts, right_words):
    result = score([(reference.split(), hypothesis.split())])
    assert result.total == Rates(*counts)
    assert result.accuracy == pytest.approx(100 * right_words / len(reference.split()))


def test_a_phrase_does_not_go_on_in_the_next_sentence():
    result = score([(["O", "B-x"], ["O", "B-x"]), (["I-x", "O"], ["B-x", "O"])])
    assert result.total == Rates(2, 2, 2)
    assert (result.num_sentences, result.num_right_sentences, result.num_words) == (2, 1, 4)


def test_report_by_hand():
    """Found: a city of three words, where the reference has two cities, a time, a city, and one behind an O.

    Words: 6 of 9 right.  Phrases: 1 of 4 found, 1 of 4 in the reference; of the cities 1 of 3 and 1 of 3.
    """
    result = score(
        [
            ("O B-city I-city B-city O".split(), "O B-city I-city I-city B-time".split()),
            ("B-city O B-day O".split(), "B-city O I-city O".split()),
        ]
    )
    assert result.report().splitlines() == [
        "processed 9 tokens with 4 phrases; found: 4 phrases; correct: 1.",
        "accuracy:  66.67%; precision:  25.00%; recall:  25.00%; FB1:  25.00",
        "             city: precision:  33.33%; recall:  33.33%; FB1:  33.33  3",
        "              day: precision:   0.00%; recall:   0.00%; FB1:   0.00  0",
        "             time: precision:   0.00%; recall:   0.00%; FB1:   0.00  1",
    ]


def test_nothing_to_divide_by():
    assert (Score().f1, Score().accuracy, Rates(0, 0, 0).precision) == (0, 0, 0)


@pytest.mark.parametrize("label", ["", "o", "B", "B-", "X-city", "city", "-city"])
def test_other_labels_are_named(label):
    with pytest.raises(FormatError, match=rf"sentence 2: label '{label}'; expected O, or B- or I- and a type"):
        score([(["O"], ["O"]), (["O"], [label])])


def test_sentences_of_other_lengths_are_named():
    with pytest.raises(FormatError, match="sentence 1: 1 labels; expected 2, one for each word"):
        score([(["O", "O"], ["O"])])


# conlleval's way: it walks through both label rows at once, and asks of each pair of neighbours whether a phrase ends
# or begins between them.
ENDS = {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O")}
BEGINS = {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I")}


def ends(before, after):
    return (before[0], after[0]) in ENDS or (before[0] != "O" and before[1] != after[1])


def begins(before, after):
    return (before[0], after[0]) in BEGINS or (after[0] != "O" and before[1] != after[1])


def walk(pairs):
    """(in reference, found, right) over sentences."""
    in_reference = found = right = 0
    matching = False
    last = ("O", ""), ("O", "")
    for reference, hypothesis in pairs:
        for labels in [*zip(reference, hypothesis), ("O", "O")]:
            now = tuple((label[0], label[2:]) for label in labels)
            if matching:
                ended = [ends(before, after) for before, after in zip(last, now)]
                if all(ended) and last[0][1] == last[1][1]:
                    right += 1
                    matching = False
                elif ended[0] != ended[1] or now[0][1] != now[1][1]:
                    matching = False
            begun = [begins(before, after) for before, after in zip(last, now)]
            if all(begun) and now[0][1] == now[1][1]:
                matching = True
            in_reference += begun[0]
            found += begun[1]
            last = now
    return in_reference, found, right


LABELS = st.sampled_from(["O", "B-x", "I-x", "B-y", "I-y"])


@given(st.lists(st.lists(st.tuples(LABELS, LABELS), max_size=8), max_size=5))
def test_the_same_as_by_walking_through_pairs_of_tags(sentences):
    pairs = [([true for true, _ in one], [found for _, found in one]) for one in sentences]
    assert score(pairs).total == Rates(*walk(pairs))
