"""The language-model automaton against the ARPA rule computed straight from dictionaries."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder.lm.evaluation import perplexity
from decoder.lm.language_model import LanguageModel, lm_step
from readers.errors import GraphError
from readers.language.arpa import Arpa, ArpaOrder, read_arpa
from tests.decoder import graphs


def make_arpa(vocabulary, orders):
    """orders: per order a dict from word tuple to (log10 probability, log10 back-off)."""
    ids = {word: i for i, word in enumerate(vocabulary)}
    made = []
    for k, ngrams in enumerate(orders, start=1):
        rows = np.array([[ids[w] for w in words] for words in ngrams], dtype=np.int32).reshape(-1, k)
        values = np.array(list(ngrams.values()), dtype=np.float64).reshape(-1, 2)
        made.append(ArpaOrder(rows, values[:, 0].copy(), values[:, 1].copy()))
    return Arpa(list(vocabulary), made)


def twin_log10(orders, history, word):
    """log10 P(word | history) by the definition; history is as long as the model's order less one, or shorter."""
    history = tuple(history)[-(len(orders) - 1) :] if len(orders) > 1 else ()
    ngram = (*history, word)
    if ngram in orders[len(ngram) - 1]:
        return orders[len(ngram) - 1][ngram][0]
    if not history:
        return -math.inf
    backoff = orders[len(history) - 1].get(history, (None, 0.0))[1]
    return backoff + twin_log10(orders, history[1:], word)


@st.composite
def models(draw):
    """A vocabulary and orders of listed n-grams with holes of every kind: missing prefixes, suffixes, unigrams."""
    vocabulary = ["<s>", "</s>", "a", "b", "c"][: draw(st.integers(3, 5))]
    order = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.2, 0.6, 1.0]))
    orders = []
    for k in range(1, order + 1):
        all_words = list(itertools.product(vocabulary, repeat=k))
        chosen = [words for words in all_words if k == 1 or rng.random() < density ** (k - 1)]
        if k == 1 and draw(st.booleans()):
            chosen = chosen[:-1]
        rng.shuffle(chosen)
        orders.append({tuple(w): (float(-3 * rng.random()), float(rng.normal())) for w in chosen})
    return vocabulary, orders


@given(models(), st.lists(st.integers(0, 4), max_size=7))
@settings(max_examples=150, deadline=None)
def test_steps_equal_the_arpa_rule_along_any_sentence(model, path):
    vocabulary, orders = model
    lm = LanguageModel.from_arpa(make_arpa(vocabulary, orders))
    history, state = ["<s>"], lm.start_state
    for word in (vocabulary[i % len(vocabulary)] for i in path):
        cost, state = lm.step(state, lm.word_id(word))
        expected = -math.log(10) * twin_log10(orders, history, word)
        assert cost == pytest.approx(expected, rel=1e-5, abs=1e-5)
        history.append(word)


@given(models())
@settings(max_examples=50, deadline=None)
def test_states_are_only_histories_that_differ_from_their_suffix(model):
    vocabulary, orders = model
    lm = LanguageModel.from_arpa(make_arpa(vocabulary, orders))
    arrays = lm.arrays
    assert all(arrays.backoff_state[1:] < np.arange(1, lm.num_states))
    for s in range(lm.num_states):
        words = arrays.word[arrays.first_arc[s] : arrays.first_arc[s + 1]]
        assert np.all(np.diff(words) > 0)
        assert s == 0 or words.size or arrays.backoff_cost[s] != 0
    assert arrays.next_state.max() < lm.num_states


@pytest.mark.parametrize("seed", range(20))
def test_an_automaton_can_be_made_again_of_its_ngrams(seed):
    model = LanguageModel.from_arpa(
        graphs.make_arpa(*graphs.random_orders(np.random.default_rng(seed), ["a", "b"], 1 + seed % 4))
    )
    again = LanguageModel.from_arpa(model.to_arpa())
    assert (again.vocabulary, again.order, again.start_state) == (model.vocabulary, model.order, model.start_state)
    for before, after in zip(model.arrays, again.arrays, strict=True):
        np.testing.assert_array_equal(after, before)


def test_interpreted_step_equals_the_compiled_one():
    rng = np.random.default_rng(5)
    words = ["a", "b", "c"]
    orders = [{(w,): (float(-rng.random()), -0.5) for w in words}, {("a", "b"): (-0.1, 0.0)}]
    lm = LanguageModel.from_arpa(make_arpa(words, orders))
    interpreted = getattr(lm_step, "py_func", lm_step)
    for state in range(lm.num_states):
        for word in range(3):
            assert interpreted(lm.arrays, state, word) == pytest.approx(lm_step(lm.arrays, state, word))


def test_hand_computed_trigram():
    orders = [
        {("<s>",): (-99, -0.2), ("</s>",): (-1.0, 0.0), ("a",): (-0.5, -0.3), ("b",): (-0.7, -0.4)},
        {("<s>", "a"): (-0.1, -0.05), ("a", "b"): (-0.2, -0.6)},
        {("<s>", "a", "b"): (-0.01, 0.0)},
    ]
    lm = LanguageModel.from_arpa(make_arpa(["<s>", "</s>", "a", "b"], orders))
    costs = lm.sentence_costs([["a", "b", "b"], ["b"]])
    ln10 = math.log(10)
    # a: listed bigram; b: listed trigram; b after "a b": -0.6 - 0.4 - 0.7; </s> after "b b": -0.4 - 1.0
    assert costs[0] == pytest.approx([0.1 * ln10, 0.01 * ln10, 1.7 * ln10, 1.4 * ln10], rel=1e-6)
    assert costs[1] == pytest.approx([0.9 * ln10, 1.4 * ln10], rel=1e-6)


def test_prefix_that_is_not_listed_gets_its_backed_off_probability():
    orders = [{("a",): (-0.3, -0.1), ("b",): (-0.4, -0.2)}, {}, {("a", "b", "a"): (-0.05, 0.0)}]
    lm = LanguageModel.from_arpa(make_arpa(["a", "b"], orders))
    _, state = lm.step(0, 0)
    cost, state = lm.step(state, 1)
    assert cost == pytest.approx(0.5 * math.log(10))
    assert lm.step(state, 0)[0] == pytest.approx(0.05 * math.log(10))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("log10", [-100.0, -1e308, -np.inf])
def test_less_than_minus_99_is_impossible(log10):
    model = LanguageModel.from_arpa(make_arpa(["a", "b"], [{("a",): (log10, log10), ("b",): (-0.1, 0.0)}]))
    assert model.step(model.start_state, 0)[0] == np.inf
    assert model.step(model.start_state, 1)[0] == pytest.approx(0.1 * np.log(10))


def test_minus_99_is_impossible_also_as_backoff():
    orders = [{("a",): (-99.0, -99.0), ("b",): (-0.1, 0.0)}, {("a", "a"): (-0.2, 0.0)}]
    lm = LanguageModel.from_arpa(make_arpa(["a", "b"], orders))
    cost, state = lm.step(0, 0)
    assert cost == math.inf
    assert lm.step(state, 0)[0] == pytest.approx(0.2 * math.log(10))
    assert lm.step(state, 1)[0] == math.inf


def test_model_without_sentence_marks_starts_at_the_empty_history():
    lm = LanguageModel.from_arpa(make_arpa(["a"], [{("a",): (-0.5, 0.0)}]))
    assert (lm.start_state, lm.end_id, lm.order) == (0, -1, 1)


def test_unknown_words_map_to_unk_or_are_named():
    with_unknown = LanguageModel.from_arpa(make_arpa(["<UNK>", "a"], [{("<UNK>",): (-1, 0), ("a",): (-1, 0)}]))
    assert list(with_unknown.word_ids(["a", "zebra"])) == [1, 0]
    without = LanguageModel.from_arpa(make_arpa(["a"], [{("a",): (-1, 0)}]))
    assert without.word_id("zebra") == -1
    with pytest.raises(GraphError, match=r"x\.dict: 1 word not in the language model: zebra; expected .*<UNK>"):
        without.word_ids(["a", "zebra"], where="x.dict")


def test_ngram_listed_twice_is_refused_by_name():
    arpa = make_arpa(["a", "b"], [{("a",): (-1, 0), ("b",): (-1, 0)}, {("a", "b"): (-1, 0)}])
    arpa.orders[1] = ArpaOrder(np.array([[0, 1], [0, 1]]), np.zeros(2), np.zeros(2))
    with pytest.raises(GraphError, match="2-gram 'a b' is listed twice"):
        LanguageModel.from_arpa(arpa)


def test_step_refuses_what_the_kernel_would_read_out_of_range():
    lm = LanguageModel.from_arpa(make_arpa(["a"], [{("a",): (-1, 0)}]))
    with pytest.raises(GraphError, match=r"word -1; expected .* 0 <= word < 1"):
        lm.step(0, -1)


def test_perplexity_counts_unknown_and_impossible_apart():
    orders = [{("<s>",): (-99, 0), ("</s>",): (-1, 0), ("a",): (-2, 0), ("b",): (-99, 0)}]
    lm = LanguageModel.from_arpa(make_arpa(["<s>", "</s>", "a", "b"], orders))
    result = perplexity(lm, [["a", "b"], ["x", "a"]])
    assert result.unknown == ("x",)
    assert result.impossible == ("b (1)",)
    assert (result.num_sentences, result.num_words, result.num_predicted) == (2, 4, 4)
    assert result.perplexity == pytest.approx(10 ** (6 / 4), rel=1e-6)


@pytest.mark.corpus
def test_flat_model_of_an4(an4_dir):
    lm = LanguageModel.from_arpa(read_arpa(an4_dir / "etc" / "an4.lm"))
    assert (lm.order, len(lm.vocabulary), lm.unknown_id >= 0) == (2, 107, True)
    cost, state = lm.step(lm.start_state, lm.word_id("YES"))
    assert cost == pytest.approx(2.0253 * math.log(10), rel=1e-5)
    assert lm.step(state, lm.end_id)[0] == pytest.approx(2.0253 * math.log(10), rel=1e-5)
    assert lm.step(lm.start_state, lm.end_id)[0] == 0.0
    assert lm.step(0, lm.word_id("<s>"))[0] == math.inf
