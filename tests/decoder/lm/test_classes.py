"""Class models, class finding and mixtures against their definitions."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from decoder.lm.classes import class_model, find_classes
from decoder.lm.estimation import estimate
from decoder.lm.language_model import LanguageModel
from decoder.lm.mixing.mixture import estimate_with_classes, mix
from readers.errors import GraphError

CLASSES = {"one": "digit", "two": "digit", "six": "digit", "go": "command", "a": "letter", "b": "letter"}
VOCABULARY = ["<s>", "</s>", *CLASSES]


def random_text(seed, num_sentences=40):
    rng = np.random.default_rng(seed)
    words = ["one", "two", "go", "a", "b"]
    return [list(rng.choice(words, size=n)) for n in rng.integers(1, 6, num_sentences)]


def histories(longest):
    for length in range(longest + 1):
        for words in itertools.product(["one", "a", "six"], repeat=length):
            yield from (words, ("<s>", *words))


def probabilities(model, history):
    """word -> probability after a history, by steps of the automaton."""
    state = 0
    for word in history:
        state = model.start_state if word == "<s>" else model.step(state, model.word_id(word))[1]
    return {w: math.exp(-model.step(state, model.word_id(w))[0]) for w in VOCABULARY if w != "<s>"}


@pytest.mark.parametrize("order", [1, 2, 3])
def test_class_model_is_class_probability_times_share_in_the_class(order):
    text = random_text(1)
    over_words = class_model(text, CLASSES, order, VOCABULARY, added=0.5)
    in_classes = [[CLASSES[word] for word in sentence] for sentence in text]
    over_classes = LanguageModel.from_arpa(estimate(in_classes, order, "kn", ["command", "digit", "letter"]))
    counts = Counter(word for sentence in text for word in sentence)
    for history in histories(order):
        state = 0
        for word in history:
            if word == "<s>":
                state = over_classes.start_state
            else:
                state = over_classes.step(state, over_classes.word_id(CLASSES[word]))[1]
        found = probabilities(over_words, history)
        assert sum(found.values()) == pytest.approx(1.0, abs=1e-5)
        for word, p in found.items():
            name = CLASSES.get(word, word)
            share = 1.0
            if word != "</s>":
                share = (counts[word] + 0.5) / sum(counts[w] + 0.5 for w in CLASSES if CLASSES[w] == name)
            expected = math.exp(-over_classes.step(state, over_classes.word_id(name))[0]) * share
            assert p == pytest.approx(expected, rel=1e-5)


def log_likelihood(text, classes):
    """Of the text under a class bigram of relative frequencies, in the terms that the classes can change."""
    pairs, left, right = Counter(), Counter(), Counter()
    for sentence in text:
        marked = ["<s>", *(classes[word] for word in sentence), "</s>"]
        for a, b in itertools.pairwise(marked):
            pairs[a, b] += 1
            left[a] += 1
            right[b] += 1
    return sum(n * math.log(n / left[a] / right[b]) for (a, b), n in pairs.items())


@pytest.mark.parametrize("seed", range(5))
def test_no_single_word_can_move_to_a_better_class(seed):
    rng = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(8)]
    text = [list(rng.choice(words, size=n, p=np.arange(1, 9) / 36)) for n in rng.integers(1, 9, 60)]
    classes = find_classes(text, 3)
    best = log_likelihood(text, classes)
    for word in classes:
        for name in ("class1", "class2", "class3"):
            assert log_likelihood(text, {**classes, word: name}) <= best + 1e-6


def test_words_that_stand_in_the_same_places_share_a_class():
    rng = np.random.default_rng(0)
    text = [[str(rng.choice(["a", "b", "c"])), str(rng.choice(["1", "2", "3"]))] for _ in range(60)]
    classes = find_classes(text, 2, ["a", "unseen1", "unseen2"])
    assert len({classes[w] for w in "abc"}) == len({classes[w] for w in "123"}) == 1
    assert classes["a"] != classes["1"]
    assert classes["unseen1"] == classes["unseen2"] == "unseen"


@pytest.mark.parametrize("full_history", [0, 1, 2])
def test_mixture_sums_to_one_and_is_exact_where_it_is_complete(full_history):
    text = random_text(2)
    arpa = estimate(text, 3, "kn", VOCABULARY[2:])
    models = [LanguageModel.from_arpa(arpa), class_model(text, CLASSES, 3, VOCABULARY)]
    mixed = mix(models, [0.7, 0.3], arpa, full_history)
    listed = {tuple(mixed.vocabulary[i] for i in row) for order in mixed.orders for row in order.words}
    model = LanguageModel.from_arpa(mixed)
    num_exact = 0
    for history in histories(2):
        found = probabilities(model, history)
        assert sum(found.values()) == pytest.approx(1.0, abs=1e-5)
        parts = [probabilities(part, history) for part in models]
        for word, p in found.items():
            if (*history, word) in listed:
                assert p == pytest.approx(0.7 * parts[0][word] + 0.3 * parts[1][word], rel=1e-5)
                num_exact += 1
    # complete: the 7 words after nothing; after <s>, one, a, six; after the 6 pairs of these that the text has
    assert num_exact >= [7, 5 * 7, 11 * 7][full_history]


def test_classes_by_table_leave_other_words_alone():
    text = random_text(3)
    arpa = estimate_with_classes(text, 2, VOCABULARY[2:], {"one": "digit", "two": "digit", "six": "digit"})
    with_all = {word: word for word in CLASSES} | {"one": "digit", "two": "digit", "six": "digit"}
    words = estimate(text, 2, "kn", VOCABULARY[2:])
    by_hand = mix([LanguageModel.from_arpa(words), class_model(text, with_all, 2, VOCABULARY)], [0.5, 0.5], words, 1)
    for ours, theirs in zip(arpa.orders, by_hand.orders):
        assert ours.logprob == pytest.approx(theirs.logprob)


def test_text_words_outside_the_vocabulary_take_part_as_unk():
    arpa = estimate_with_classes([["one", "zebra"], ["two"]], 2, ["one", "two"], 2, unknown="<UNK>")
    model = LanguageModel.from_arpa(arpa)
    assert arpa.vocabulary == ["<s>", "</s>", "<UNK>", "one", "two"]
    total = sum(math.exp(-model.step(model.start_state, i)[0]) for i in range(1, 5))
    assert total == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: class_model([["one"]], {}, 1, ["<s>", "</s>", "one"]),
            "none for one; expected a class for every word",
        ),
        (lambda: class_model([["one"]], {"one": "<s>"}, 1, ["<s>", "</s>", "one"]), "a class is named <s>"),
        (lambda: find_classes([["one"]], 0), "0 classes; expected at least 1"),
        (lambda: mix([], [1.0], estimate([["one"]], 1)), "weights .* for 0 models"),
        (lambda: estimate_with_classes([["one"]], 1, None, 2, class_weight=1.5), "class weight 1.5; expected 0 to 1"),
        (
            lambda: mix([LanguageModel.from_arpa(estimate([["one"]], 1))], [1.0], estimate([["two"]], 1)),
            "different vocabularies",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call, message):
    with pytest.raises(GraphError, match=message):
        call()
