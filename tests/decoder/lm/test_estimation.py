"""Language-model estimates against the formulas worked out on dictionaries of counts."""

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from decoder.lm.estimation import FALLBACK_DISCOUNTS, discounts, estimate, uniform
from decoder.lm.evaluation import perplexity
from decoder.lm.language_model import LanguageModel
from readers.errors import GraphError
from readers.language.arpa import read_arpa, write_arpa


def random_text(seed, num_sentences=30):
    rng = np.random.default_rng(seed)
    return [
        list(rng.choice(list("abcde"), p=[0.4, 0.3, 0.15, 0.1, 0.05], size=n))
        for n in rng.integers(0, 6, num_sentences)
    ]


def twin(sentences, order, method, vocabulary):
    """word, history -> probability, by the definition; history is any tuple of words, as long as the order allows."""
    padded = [("<s>", *sentence, "</s>") for sentence in sentences]
    raw = Counter(s[i : i + k] for s in padded for k in range(1, order + 1) for i in range(len(s) - k + 1))
    before = defaultdict(set)
    for ngram in raw:
        if len(ngram) > 1:
            before[ngram[1:]].add(ngram[0])

    def a(ngram):
        if ngram[-1] == "<s>":
            return 0
        if method == "wb" or len(ngram) == order or ngram[0] == "<s>":
            return raw[ngram]
        return len(before[ngram])

    level = {k: [a(ngram) for ngram in raw if len(ngram) == k] for k in range(1, order + 1)}
    discount = {k: discounts(np.array(level[k])) for k in level}
    predicted = [word for word in vocabulary if word != "<s>"]

    def probability(word, history):
        lower = probability(word, history[1:]) if history else 1 / len(predicted)
        followers = [a((*history, w)) for w in predicted if a((*history, w)) > 0]
        if not followers:
            return lower
        count = a((*history, word))
        if method == "wb":
            return (count + len(followers) * lower) / (sum(followers) + len(followers))
        d = [0.0, *discount[len(history) + 1]]
        left = sum(d[min(c, 3)] for c in followers) / sum(followers)
        return (count - d[min(count, 3)]) / sum(followers) + left * lower

    return probability


@pytest.mark.parametrize("method", ["kn", "wb"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_estimate_equals_the_formulas_and_sums_to_one(seed, order, method):
    text = random_text(seed)
    vocabulary = ["<s>", "</s>", *"abcde", "unseen"]
    model = LanguageModel.from_arpa(estimate(text, order, method, [*"abcde", "unseen"]))
    probability = twin(text, order, method, vocabulary)
    starts = [("<s>",), ("a",), ("e",), ("unseen",)]
    for start in starts:
        for tail in itertools.chain.from_iterable(itertools.product("ab", repeat=n) for n in range(order)):
            history = (*start, *tail)
            state = model.start_state if start == ("<s>",) else model.step(0, model.word_id(start[0]))[1]
            for word in tail:
                state = model.step(state, model.word_id(word))[1]
            known = history[max(0, len(history) - order + 1) :]
            total = 0.0
            for word in vocabulary[1:]:
                p = np.exp(-model.step(state, model.word_id(word))[0])
                assert p == pytest.approx(probability(word, known), rel=1e-5)
                total += p
            assert total == pytest.approx(1.0, abs=1e-5)


def test_witten_bell_bigram_by_hand():
    model = LanguageModel.from_arpa(estimate([["a", "a"], ["b"]], 2, "wb", ["a", "b", "c"]))
    # unigrams: a 2, b 1, </s> 2 of 5, 3 types, uniform over a, b, c, </s>
    unigram_a, unigram_b = (2 + 3 / 4) / 8, (1 + 3 / 4) / 8
    # after a: a 1, </s> 1, two types
    state = model.step(model.start_state, model.word_id("a"))[1]
    assert np.exp(-model.step(state, model.word_id("a"))[0]) == pytest.approx((1 + 2 * unigram_a) / 4)
    assert np.exp(-model.step(state, model.word_id("b"))[0]) == pytest.approx(2 * unigram_b / 4)


def test_discounts_by_hand_and_where_counts_of_counts_are_missing():
    counts = np.array([1] * 8 + [2] * 4 + [3] * 2 + [4] * 1 + [9])
    y = 8 / 16
    assert discounts(counts) == pytest.approx((y, 2 - 3 * y * 2 / 4, 3 - 4 * y * 1 / 2))
    assert discounts(np.array([2, 2, 3])) == FALLBACK_DISCOUNTS
    assert discounts(np.array([1, 1, 2])) == pytest.approx((0.5, 0.5, 0.5))
    # n3 so large that D2 would be negative: 2 - 3 * 0.5 * 8 / 2
    assert discounts(np.array([1, 1, 1, 1, 2, 2] + [3] * 8 + [4])) == pytest.approx((0.5, 0.5, 2.75))


def test_kneser_ney_bigram_and_perplexity_with_an_unknown_word_by_hand():
    """c and zebra are <unk>, an event like others; so is the end of a sentence."""
    text = [["a", "b"], ["a", "c"], ["a", "b"]]
    model = LanguageModel.from_arpa(estimate(text, 2, "kn", ["a", "b"], "<unk>"))
    # different words before a, b, <unk>, </s>: 1, 1, 1, 2 of 5; n1 = 3, n2 = 1: Y = 3/5, all discounts
    left = 4 * 0.6 / 5
    word, end = (1 - 0.6) / 5 + left / 4, (2 - 0.6) / 5 + left / 4
    # <s> a 3, a b 2, a <unk> 1, b </s> 2, <unk> </s> 1; n1 = n2 = 2, n3 = 1: D1 = Y = 1/3, D2 = 2 - 3 Y n3 / n2
    d1, d2, d3 = 1 / 3, 2 - 1 / 2, 1 / 3
    expected = {
        ("<s>", "a"): (3 - d3) / 3 + d3 / 3 * word,
        ("a", "b"): (2 - d2) / 3 + (d2 + d1) / 3 * word,
        ("a", "c"): (1 - d1) / 3 + (d2 + d1) / 3 * word,
        ("b", "</s>"): (2 - d2) / 2 + d2 / 2 * end,
        ("c", "</s>"): (1 - d1) / 1 + d1 * end,
    }
    for (before, following), probability in expected.items():
        state = model.start_state if before == "<s>" else model.step(0, model.word_id(before))[1]
        assert np.exp(-model.step(state, model.word_id(following))[0]) == pytest.approx(probability)
    found = perplexity(model, [["a", "zebra"]])
    product = expected["<s>", "a"] * expected["a", "c"] * expected["c", "</s>"]
    assert found.perplexity == pytest.approx(product ** (-1 / 3))
    assert (found.num_predicted, found.num_as_unknown) == (3, 1)


def test_perplexity_of_nothing_is_not_a_number():
    model = LanguageModel.from_arpa(estimate([["a", "b"]], order=1, method="wb"))
    found = perplexity(model, [])
    assert (found.num_sentences, found.num_words, found.cost, found.num_predicted) == (0, 0, 0.0, 0)
    assert math.isnan(found.perplexity)


def test_sentences_shorter_than_the_order_leave_its_section_empty():
    arpa = estimate([["a"], []], 5, "kn")
    assert [len(order.words) for order in arpa.orders] == [3, 3, 1, 0, 0]


def test_unknown_words_become_unk_or_are_refused_by_name():
    arpa = estimate([["a", "zebra"]], 2, "wb", vocabulary=["a"], unknown="<UNK>")
    assert arpa.vocabulary == ["<s>", "</s>", "<UNK>", "a"]
    with pytest.raises(GraphError, match="words outside the vocabulary: zebra; expected"):
        estimate([["a", "zebra"]], 2, "wb", vocabulary=["a"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], 2), "no sentences"),
        (([["a"]], 0), "order 0; expected at least 1"),
        (([["a"]], 2, "good-turing"), "method 'good-turing'; expected kn or wb"),
        (([["a"], ["<s>", "a"]], 2), "sentence 2 contains <s> or </s>"),
    ],
)
def test_arguments_that_no_model_follows_from_are_refused(arguments, message):
    with pytest.raises(GraphError, match=message):
        estimate(*arguments)


def test_model_survives_the_arpa_file(tmp_path):
    arpa = estimate(random_text(1), 3, "kn", [*"abcde", "unseen"])
    write_arpa(tmp_path / "lm.arpa", arpa, digits=9)
    first, second = LanguageModel.from_arpa(arpa), LanguageModel.from_arpa(read_arpa(tmp_path / "lm.arpa"))
    for a, b in zip(first.sentence_costs(random_text(2)), second.sentence_costs(random_text(2))):
        assert a == pytest.approx(b, rel=1e-6)


def test_uniform_model_gives_every_word_and_the_end_the_same_probability():
    model = LanguageModel.from_arpa(uniform(["a", "<s>", "b", "a", "</s>", "c"]))
    assert model.vocabulary == ["</s>", "a", "b", "c"]
    for words in (["a", "b", "</s>"], ["</s>"], ["c", "c", "c", "</s>"]):
        assert perplexity(model, [words[:-1]]).perplexity == pytest.approx(4)
    with pytest.raises(GraphError, match="no words; expected at least one"):
        uniform(["<s>"])
