"""Pruned n-gram models against the relative entropies of whole distributions."""

import itertools

import numpy as np
import pytest

from decoder.lm.estimation import estimate
from decoder.lm.language_model import LanguageModel
from decoder.lm.mixing.histories import history_probabilities
from decoder.lm.mixing.ngram_index import complete
from decoder.lm.mixing.pruning import prune
from readers.errors import GraphError
from readers.language.arpa import Arpa, ArpaOrder
from tests.decoder.lm.test_estimation import random_text


def listed(model):
    return [{tuple(model.vocabulary[i] for i in words) for words in order.words} for order in model.orders]


def distribution(model, history):
    """P(. | history) over the words and </s>, by the definition of a back-off model."""
    tables = [
        {tuple(words.tolist()): (p, b) for words, p, b in zip(order.words, order.logprob, order.backoff)}
        for order in model.orders
    ]

    def log10(words):
        if words in tables[len(words) - 1]:
            return tables[len(words) - 1][words][0]
        backoff = tables[len(words) - 2].get(words[:-1], (0, 0.0))[1]
        return backoff + log10(words[1:])

    ids = [model.vocabulary.index(word) for word in history]
    predicted = [i for i, word in enumerate(model.vocabulary) if word != "<s>"]
    return np.array([10.0 ** log10((*ids, i)) for i in predicted])


def without(model, order, row):
    """The model without one n-gram of the highest order, its history's back-off weight set so that it sums to 1."""
    rows = model.orders[order - 1]
    chosen = np.arange(len(rows)) != row
    orders = [ArpaOrder(one.words, one.logprob, one.backoff.copy()) for one in model.orders]
    orders[order - 1] = ArpaOrder(rows.words[chosen], rows.logprob[chosen], rows.backoff[chosen])
    smaller = Arpa(model.vocabulary, orders)
    history = rows.words[row, :-1]
    place = next(i for i, words in enumerate(orders[order - 2].words) if (words == history).all())
    for _ in range(60):  # the weight scales only the words that back off
        p = distribution(smaller, [model.vocabulary[i] for i in history])
        predicted = [i for i, word in enumerate(model.vocabulary) if word != "<s>"]
        kept = {int(words[-1]) for words in orders[order - 1].words if (words[:-1] == history).all()}
        backing = np.array([i not in kept for i in predicted])
        orders[order - 2].backoff[place] += np.log10((1 - p[~backing].sum()) / p[backing].sum())
    return smaller


def stationary(model):
    """P(h) of the histories that a trigram generates, (v, w) or (<s>,), by many steps of the dense chain."""
    words = [word for word in model.vocabulary if word != "<s>"]
    inner = [word for word in words if word != "</s>"]
    states = [("<s>",), *itertools.product(["<s>", *inner], inner)]
    steps = np.zeros((len(states), len(states)))
    for i, state in enumerate(states):
        for word, p in zip(words, distribution(model, state)):
            following = ("<s>",) if word == "</s>" else (state[-1], word)
            steps[i, states.index(following)] += p
    return dict(zip(states, np.linalg.matrix_power(steps, 1000)[0]))


@pytest.mark.parametrize("seed", range(2))
def test_histories_come_as_often_as_in_text_that_the_model_generates(seed):
    model = estimate(random_text(seed), 3)
    for pruned in (model, prune(model, 3e-3)):  # the second has gaps
        expected = stationary(pruned)
        whole = complete(pruned)
        unigrams, bigrams = history_probabilities(whole, pruned.vocabulary)
        for words, p in zip(whole.index.rows[1], bigrams):
            state = tuple(pruned.vocabulary[i] for i in words)
            assert p == pytest.approx(expected.get(state, 0.0), abs=1e-4), state  # 0: nothing follows </s>
        assert unigrams[pruned.vocabulary.index("<s>")] == pytest.approx(expected["<s>",], abs=1e-4)
        a = sum(p for state, p in expected.items() if state[-1] == "a")
        assert unigrams[pruned.vocabulary.index("a")] == pytest.approx(a, abs=1e-4)


def test_ngrams_of_the_highest_order_stay_by_the_entropy_of_their_removal():
    model = estimate(random_text(0), 3)
    history_probability = stationary(model)
    changes = []
    for row, words in enumerate(model.orders[2].words):
        history = [model.vocabulary[i] for i in words[:2]]
        p, q = distribution(model, history), distribution(without(model, 3, row), history)
        changes.append(np.expm1(history_probability[tuple(history)] * np.sum(p * np.log(p / q))))
    threshold = float(np.median(changes))
    expected = {
        tuple(model.vocabulary[i] for i in words)
        for words, change in zip(model.orders[2].words, changes)
        if change >= threshold
    }
    assert listed(prune(model, threshold * (1 - 1e-9)))[2] == expected


@pytest.mark.parametrize("threshold", [0.0, 1e-4, 1e-2, 10.0])
def test_every_history_of_a_pruned_model_sums_to_one_and_what_stays_keeps_its_probability(threshold):
    model = estimate(random_text(7, 60), 4)
    pruned = prune(model, threshold)
    assert pruned.vocabulary == model.vocabulary
    for before, after in zip(listed(model), listed(pruned)):
        assert after <= before
    if threshold == 0:
        assert listed(pruned) == listed(model)
    if threshold == 10:
        assert [len(order) for order in pruned.orders[1:]] == [0, 0, 0]
    for length in range(4):
        for history in itertools.product("abe", repeat=length):
            assert distribution(pruned, history).sum() == pytest.approx(1, abs=1e-6)
    lm = LanguageModel.from_arpa(pruned)  # also what the search sees
    for sentence in random_text(8):
        costs = lm.sentence_costs([sentence])[0]
        histories = [["<s>", *sentence][max(0, i - 2) : i + 1] for i in range(len(sentence) + 1)]
        predicted = [word for word in pruned.vocabulary if word != "<s>"]
        for cost, history, word in zip(costs, histories, [*sentence, "</s>"]):
            assert np.exp(-cost) == pytest.approx(distribution(pruned, history)[predicted.index(word)], rel=1e-4)


@pytest.mark.parametrize("first", [0.05, 0.15, 0.45, 0.9])
def test_a_threshold_of_0_leaves_out_nothing_by_rounding(first):
    words = ArpaOrder(np.array([[0], [1], [2]], np.int32), np.log10([0.5, 0.2, 0.3]), np.zeros(3))
    backed_off = (1 - first) / 0.5 * 0.2  # what backing off gives the second bigram
    arcs = ArpaOrder(np.array([[0, 0], [0, 1]], np.int32), np.log10([first, backed_off]), np.zeros(2))
    assert len(prune(Arpa(["a", "b", "</s>"], [words, arcs]), 0).orders[1]) == 2


def test_a_suffix_that_is_not_listed_has_the_probability_that_backing_off_gives_it():
    pruned = prune(estimate(random_text(7, 60), 3), 1e-3)
    bigrams = listed(pruned)[1]
    assert any(words[1:] not in bigrams for words in listed(pruned)[2])
    again = prune(pruned, 0)
    assert listed(again) == listed(pruned)
    for history in itertools.product("abe", repeat=2):
        assert distribution(again, history) == pytest.approx(distribution(pruned, history), rel=1e-6)
    assert sum(map(len, listed(prune(pruned, 1e-2)))) < sum(map(len, listed(pruned)))


def test_a_prefix_that_is_not_listed_is_added():
    model = estimate(random_text(1), 3, vocabulary="abcdefg")
    prefix = model.orders[2].words[len(model.orders[2]) // 2, :2]
    others = (model.orders[1].words != prefix).any(axis=1)
    bigrams = ArpaOrder(*(values[others] for values in vars(model.orders[1]).values()))
    mended = prune(Arpa(model.vocabulary, [model.orders[0], bigrams, model.orders[2]]), 0)
    assert listed(mended) == listed(model)
    for history in itertools.product("abe", repeat=2):
        assert distribution(mended, history).sum() == pytest.approx(1)
    row = np.flatnonzero((mended.orders[1].words == prefix).all(axis=1))[0]
    backed_off = model.orders[0].backoff[prefix[0]] + model.orders[0].logprob[prefix[1]]
    assert mended.orders[1].logprob[row] == pytest.approx(backed_off)


def test_a_negative_threshold_is_refused():
    with pytest.raises(GraphError, match="threshold -1; expected at least 0"):
        prune(estimate(random_text(1), 3), -1)
