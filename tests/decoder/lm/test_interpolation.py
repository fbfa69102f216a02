"""Mixtures of n-gram models against sums of the models' own probabilities."""

import itertools

import numpy as np
import pytest

from decoder.lm.estimation import estimate
from decoder.lm.language_model import LanguageModel
from decoder.lm.mixing.mixture import best_weights, interpolate
from decoder.lm.mixing.ngram_index import NgramIndex
from readers.errors import GraphError
from readers.language.arpa import Arpa, ArpaOrder
from tests.decoder.lm.test_estimation import random_text


def probability(model, history, word):
    """P(word | <s> history), the model's own or, for a word that it lacks, 0."""
    lm = LanguageModel.from_arpa(model)
    if word not in model.vocabulary:
        return 0.0
    return float(np.exp(-lm.sentence_costs([[*history, word]])[0][len(history)]))


def models():
    short = [[word.replace("e", "f") for word in sentence] for sentence in random_text(2)]
    return estimate(random_text(1), 3), estimate(short, 2)


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_listed_ngrams_have_the_weighted_sum_of_the_models_and_every_history_sums_to_one(weight):
    first, second = models()
    mixed = interpolate([first, second], [weight, 1 - weight])
    words = [word for word in mixed.vocabulary if word != "<s>"]
    assert set(words) == {*"abcdef", "</s>"}
    for history in [(), *itertools.product("ab", repeat=2)]:
        known = [model for model in (first, second) if set(history) <= set(model.vocabulary)]
        assert len(known) == 2
        total = sum(probability(mixed, history, word) for word in words if word != "</s>")
        end = LanguageModel.from_arpa(mixed).sentence_costs([history])[0][-1]
        assert total + np.exp(-end) == pytest.approx(1)
    lm = LanguageModel.from_arpa(mixed)
    for words in mixed.orders[2].words:
        history, word = [mixed.vocabulary[i] for i in words[:2]], mixed.vocabulary[words[2]]
        if history[0] == "<s>" and word != "</s>":
            expected = weight * probability(first, history[1:], word) + (1 - weight) * probability(
                second, history[1:], word
            )
            assert probability(mixed, history[1:], word) == pytest.approx(expected, rel=1e-6)
    assert lm.order == 3


def test_a_word_that_a_model_lacks_has_a_share_of_its_unknown_word():
    text = [["a", "b"], ["a", "x"]]
    open_model = estimate(text, 2, vocabulary=["a", "b"], unknown="<UNK>")
    other = estimate([["a", "c"], ["c", "d"]], 2)
    mixed = interpolate([open_model, other], [1.0, 0.0])
    unknown = 10.0 ** open_model.orders[0].logprob[open_model.vocabulary.index("<UNK>")]
    for word in ("c", "d", "<UNK>"):
        assert 10.0 ** mixed.orders[0].logprob[mixed.vocabulary.index(word)] == pytest.approx(unknown / 3)


def test_both_spellings_of_the_unknown_word_are_one_word_and_every_start_of_a_sentence_is_free():
    first = estimate([["a", "x"], ["a"]], 2, vocabulary=["a"], unknown="<unk>")
    second = estimate([["b", "x"], ["b"]], 2, vocabulary=["b"], unknown="<UNK>")
    mixed = interpolate([first, second], [0.5, 0.5])
    assert set(mixed.vocabulary) == {"a", "b", "<s>", "</s>", "<unk>"}
    assert best_weights([first, second], [["x", "x"]]) == pytest.approx((0.5, 0.5))
    bare = Arpa(["a", "<unk>"], [ArpaOrder(np.array([[0], [1]], np.int32), np.log10([0.75, 0.25]), np.zeros(2))])
    mixed = interpolate([bare, second], [1.0, 0.0])  # </s> and b have a share, and <s> none
    assert 10.0 ** mixed.orders[0].logprob[mixed.vocabulary.index("<unk>")] == pytest.approx(0.25 / 3)


def test_a_history_whose_words_take_all_probability_leaves_none_to_the_words_of_another_model():
    words = ArpaOrder(np.array([[0], [1], [2]], np.int32), np.log10([0.5, 0.25, 0.25]), np.zeros(3))
    after_a = ArpaOrder(np.array([[0, 0], [0, 1], [0, 2]], np.int32), np.log10([0.5, 0.25, 0.25]), np.zeros(3))
    full = Arpa(["a", "</s>", "<unk>"], [words, after_a])
    mixed = interpolate([full, estimate([["b"]], 2)], [1.0, 0.0])
    assert [probability(mixed, ["a"], word) for word in ("a", "b")] == pytest.approx([0.5, 0], abs=1e-7)


def test_the_best_weights_are_those_of_a_search_over_all():
    first, second = models()
    text = [*random_text(3), ["f", "f", "a"]]
    weights = best_weights([first, second], text)
    costs = [
        np.array([probability(model, sentence[:i], word) for sentence in text for i, word in enumerate(sentence)])
        for model in (first, second)
    ]
    ends = [
        [np.exp(-c[-1]) if not np.isnan(c[-1]) else 0 for c in LanguageModel.from_arpa(m).sentence_costs(text)]
        for m in (first, second)
    ]
    grid = np.linspace(0.001, 0.999, 999)
    # Words after one that a model lacks have an empty history in it, in sentence_costs as here.
    likelihood = [
        np.log(np.maximum(w * np.append(costs[0], ends[0]) + (1 - w) * np.append(costs[1], ends[1]), 1e-300)).sum()
        for w in grid
    ]
    assert weights[0] == pytest.approx(grid[int(np.argmax(likelihood))], abs=0.02)
    assert sum(weights) == pytest.approx(1)


def test_a_text_without_a_known_word_is_refused():
    model = estimate([["a"]], 1, unknown="<UNK>")
    assert best_weights([model], [["a"]]) == (1.0,)
    with pytest.raises(GraphError, match=r"weights .* for 2 models"):
        interpolate(list(models()), [0.5])


def test_the_longest_ngrams_are_found():
    orders = [np.zeros((0, order), np.int32) for order in range(1, 1001)]
    orders[299] = np.arange(300, dtype=np.int32)[np.newaxis] % 2
    index = NgramIndex(2, orders)
    assert index.find(orders[299]).tolist() == [0]
    assert index.keys(orders[999]).tolist() == []
    with pytest.raises(GraphError, match="a 2-gram whose prefix or suffix is not listed"):
        index.find(np.zeros((1, 300), np.int32))
