"""The most optimistic cost of each word against a search over histories, from the ARPA dictionaries alone."""

import itertools
import math

import numpy as np
import pytest

from decoder.graph.lookahead import optimistic_costs
from decoder.lm.language_model import LanguageModel
from readers.language.arpa import Arpa, ArpaOrder


def make_model(vocabulary, orders):
    ids = {word: i for i, word in enumerate(vocabulary)}
    made = []
    for k, ngrams in enumerate(orders, start=1):
        rows = np.array([[ids[w] for w in words] for words in ngrams], dtype=np.int32).reshape(-1, k)
        values = np.array(list(ngrams.values()), dtype=np.float64).reshape(-1, 2)
        made.append(ArpaOrder(rows, values[:, 0].copy(), values[:, 1].copy()))
    return LanguageModel.from_arpa(Arpa(list(vocabulary), made))


def twin_log10(orders, history, word):
    ngram = (*history, word)
    if ngram in orders[len(ngram) - 1]:
        return orders[len(ngram) - 1][ngram][0]
    if not history:
        return -math.inf
    return orders[len(history) - 1].get(history, (0, 0.0))[1] + twin_log10(orders, history[1:], word)


def random_orders(seed):
    rng = np.random.default_rng(seed)
    vocabulary = ["<s>", "</s>", "a", "b", "c"]
    orders = [{(w,): (float(-2 * rng.random()), float(rng.normal())) for w in vocabulary}]
    for _ in range(rng.integers(0, 3)):
        # every prefix is listed, as in any model that an estimator writes
        rows = [(*h, w) for h in orders[-1] if h[-1] != "</s>" for w in vocabulary[1:] if rng.random() < 0.5]
        orders.append({row: (float(-2 * rng.random()), float(rng.normal())) for row in rows})
    return vocabulary, orders


@pytest.mark.parametrize("seed", range(60))
def test_costs_equal_the_least_over_all_sentences(seed):
    """Every history of n-1 words that a sentence can have; sentences longer than that add no others."""
    vocabulary, orders = random_orders(seed)
    model = make_model(vocabulary, orders)
    words = ["</s>", "a", "b", "c"]
    found = optimistic_costs(model, model.word_ids(words))
    order = len(orders)
    for word, cost in zip(words, found):
        truth, loose = math.inf, math.inf
        for length in range(order + 2):
            for spoken in itertools.product("abc", repeat=length):
                history = ("<s>", *spoken)
                history = history[max(0, len(history) - order + 1) :]
                truth = min(truth, -math.log(10) * twin_log10(orders, history, word))
        # Histories may also be reached through the back-off of a longer one: suffixes of the true ones.
        for length in range(order):
            for history in itertools.product(("<s>", "a", "b", "c"), repeat=length):
                if "<s>" not in history[1:]:
                    loose = min(loose, -math.log(10) * twin_log10(orders, history, word))
        assert loose - 1e-5 <= cost <= truth + 1e-5
        if order <= 2:
            assert cost == pytest.approx(truth, rel=1e-5, abs=1e-5)


def test_unigram_that_no_history_backs_off_to_does_not_count():
    """TIMIT's phone bigram: unigrams of probability 1 that serve no word, since every bigram is listed."""
    orders = [
        {("<s>",): (-99.0, -99.0), ("</s>",): (0.0, 0.0), ("a",): (0.0, -99.0), ("b",): (0.0, -99.0)},
        {(h, w): (-1.0 if h == w else -0.5, 0.0) for h in ("<s>", "a", "b") for w in ("a", "b", "</s>")},
    ]
    model = make_model(["<s>", "</s>", "a", "b"], orders)
    costs = optimistic_costs(model, model.word_ids(["a", "b", "</s>"]))
    assert costs == pytest.approx([0.5 * math.log(10)] * 3)


def test_history_beyond_the_end_of_sentence_does_not_count():
    orders = [
        {("<s>",): (-99.0, 0.0), ("</s>",): (-1.0, 0.0), ("a",): (-2.0, 0.0)},
        {("</s>", "a"): (-0.1, 0.0), ("a", "a"): (-1.5, 0.0)},
    ]
    model = make_model(["<s>", "</s>", "a"], orders)
    assert optimistic_costs(model, model.word_ids(["a"])) == pytest.approx([1.5 * math.log(10)])


def test_backoff_weight_above_one_lowers_the_cost_except_where_the_word_is_listed():
    orders = [
        {("<s>",): (-99.0, 0.0), ("</s>",): (-1.0, 0.0), ("a",): (-1.0, 0.4), ("b",): (-1.0, 0.3)},
        {("a", "a"): (-2.0, 0.0)},
    ]
    model = make_model(["<s>", "</s>", "a", "b"], orders)
    # a: best after b, by its back-off; b: best after a
    assert optimistic_costs(model, model.word_ids(["a", "b"])) == pytest.approx(
        [0.7 * math.log(10), 0.6 * math.log(10)]
    )


def test_impossible_word_costs_infinity():
    model = make_model(["<s>", "</s>", "a"], [{("<s>",): (-99, 0), ("</s>",): (-1, 0), ("a",): (-99, 0)}])
    assert optimistic_costs(model, model.word_ids(["a", "</s>"]))[0] == math.inf
