"""Mixtures of language models against the weighted sum of what each says by the rule of the ARPA format."""

import math

import numpy as np
import pytest

from decoder.graph.lookahead import optimistic_costs
from decoder.lm.collection import interpolated, open_collection, read_collection
from decoder.lm.language_model import LanguageModel, automaton_step, lm_step
from decoder.search.decoder import Decoder, SearchOptions
from readers.errors import FormatError, GraphError
from readers.language.arpa import write_arpa
from tests.decoder import graphs, reference

WORDS = ["x", "y", "z"]


def random_mixture(seed, words=None):
    """(mixture, weights, tables of each model): orders 1 to 3; some lack words, some have <unk> for those."""
    rng = np.random.default_rng(seed)
    tables, models = [], []
    for _ in range(rng.integers(1, 4)):
        known = words or [word for word in WORDS if rng.random() < 0.7] or WORDS
        if not words and rng.random() < 0.5:
            known = [*known, "<unk>"]
        vocabulary, orders = graphs.random_orders(rng, known, int(rng.integers(1, 4)))
        tables.append((vocabulary, orders))
        models.append(LanguageModel.from_arpa(graphs.make_arpa(vocabulary, orders)))
    weights = rng.dirichlet(np.ones(len(models))).tolist()
    return interpolated(models, weights), weights, tables


def probability(weights, tables, before, word):
    """By the definition: each model looks at the words before, back to one that it lacks but another has."""
    spoken = {w for vocabulary, _ in tables for w in vocabulary}
    *before, word = (w if w in spoken else "<unk>" for w in (*before, word))
    total = 0.0
    for weight, (vocabulary, orders) in zip(weights, tables):
        own = word if word in vocabulary else "<unk>"
        if own in vocabulary:
            start = max((i + 1 for i, w in enumerate(before) if w not in vocabulary), default=0)
            total += weight * 10 ** reference.ngram_log10(orders, tuple(before[start:]), own)
    return total


@pytest.mark.parametrize("seed", range(60))
def test_costs_are_those_of_the_weighted_sum(seed):
    mixture, weights, tables = random_mixture(seed)
    rng = np.random.default_rng(seed + 1000)
    for _ in range(8):
        state, before = mixture.start_state, ["<s>"]
        for word in [*rng.choice(WORDS, size=rng.integers(0, 6)), "</s>"]:
            expected = probability(weights, tables, before, word)
            cost, state = mixture.step(state, mixture.word_id(word)) if mixture.word_id(word) >= 0 else (math.inf, 0)
            assert (0.0 if math.isinf(cost) else math.exp(-cost)) == pytest.approx(expected, rel=1e-5)
            before.append(word)


def test_words_of_different_models_meet_in_one_vocabulary():
    mixture = random_mixture(3)[0]
    assert len(set(mixture.vocabulary)) == len(mixture.vocabulary)
    assert mixture.end_id == mixture.vocabulary.index("</s>")


@pytest.mark.parametrize("seed", range(20))
def test_compiled_and_interpreted_steps_agree(seed):
    mixture = random_mixture(seed)[0]
    plain = getattr(lm_step, "py_func", lm_step)
    assert automaton_step is not plain
    for state in range(mixture.num_states):
        for word in range(len(mixture.vocabulary)):
            cost, following = plain(mixture.arrays, state, word)
            assert mixture.step(state, word) == (pytest.approx(cost), following)


@pytest.mark.parametrize("seed", range(30))
def test_lookahead_of_a_mixture_is_below_every_cost(seed):
    mixture, weights, tables = random_mixture(seed, WORDS)
    words = [mixture.word_id(word) for word in WORDS]
    least = optimistic_costs(mixture, np.array(words))
    for first in (None, *WORDS):
        for second in (None, *WORDS):
            before = ["<s>", *(w for w in (first, second) if w)]
            for word, bound in zip(WORDS, least):
                assert bound <= -math.log(probability(weights, tables, before, word)) + 1e-6


@pytest.mark.parametrize("seed", range(40))
def test_search_with_a_mixture_finds_the_best_path_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    graph = graphs.random_graph(rng, reference)
    scores = graphs.random_scores(rng, graph, int(rng.integers(1, 8)))
    mixture, weights, tables = random_mixture(seed, sorted({"x", "y", "z"} & set(graph.lookahead)))

    def lm_cost(before, word):
        if word == "<s>":
            return 0.0
        return -math.log(probability(weights, tables, ["<s>", *(w for w in before if w != "<s>")], word))

    options = SearchOptions(acweight=1.0, beam=math.inf, word_end_beam_frac=1.0, sil_cost=0.0)
    result = Decoder(graphs.compiled(graph), mixture, options).decode(scores)
    expected = reference.search_all(graph, graphs.as_frames(scores, graph), lm_cost)
    if not expected:
        assert result.reason
        return
    assert result.cost == pytest.approx(min(found.cost for found in expected.values()), abs=1e-4)


def test_collection_is_read_from_a_list(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name, seed in (("one.arpa", 1), ("sub/two words.arpa", 2)):
        write_arpa(tmp_path / name, graphs.make_arpa(*graphs.random_orders(np.random.default_rng(seed), WORDS, 2)))
    (tmp_path / "sub" / "list").write_text("# two models\none.arpa 0.25\n\ntwo words.arpa  0.75\n")
    assert read_collection("sub/list") == [("one.arpa", 0.25), ("sub/two words.arpa", 0.75)]
    mixture = open_collection("sub/list")
    assert mixture.arrays.weights.tolist() == [0.25, 0.75]
    assert [component.order for _, component in mixture.components] == [2, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one.arpa\n", ":1: 'one.arpa'; expected an ARPA file and its weight above 0"),
        ("one.arpa 1.0\ntwo.arpa 0\n", ":2: 'two.arpa 0'; expected"),
        ("one.arpa nan\n", ":1: 'one.arpa nan'; expected"),
        ("one.arpa 0.5\n", "weights sum to 0.5; expected 1"),
        ("", "weights sum to 0; expected 1"),
    ],
)
def test_malformed_lists_are_named(tmp_path, text, message):
    (tmp_path / "list").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_collection(tmp_path / "list")


@pytest.mark.parametrize("weights", [[], [0.5], [1.5, -0.5], [0.5, 0.4]])
def test_weights_must_be_shares(weights):
    model = LanguageModel.from_arpa(graphs.make_arpa(*graphs.random_orders(np.random.default_rng(1), WORDS, 2)))
    with pytest.raises(GraphError, match="expected weights that sum to 1"):
        interpolated([model, model], weights)


@pytest.mark.parametrize("weights", [[0.25, 0.75], [0.3, 0.7004], [0.2996, 0.7]])
def test_weights_rounded_by_their_writer_are_scaled_to_sum_to_1(weights):
    model = LanguageModel.from_arpa(graphs.make_arpa(*graphs.random_orders(np.random.default_rng(1), WORDS, 2)))
    found = interpolated([model, model], weights).arrays.weights
    np.testing.assert_allclose(found, np.array(weights) / sum(weights), rtol=1e-12)
    assert found.sum() == pytest.approx(1, abs=1e-12)
