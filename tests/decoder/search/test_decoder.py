"""The compiled search against the definition in plain Python, and what its options do."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from decoder.lm.language_model import LanguageModel
from decoder.search.decoder import Decoder, SearchOptions
from tests.decoder import graphs, reference

UNPRUNED = {"acweight": 1.0, "beam": math.inf, "word_end_beam_frac": 1.0, "sil_cost": 0.0}
UNPRUNED |= {"max_tokens": 1_000_000, "widenings": 0, "partial": False}


def frame_states(result, decoder):
    """The HMM state of every frame."""
    names = decoder.graph.states
    hmm = decoder.graph.arrays.position_state
    path = result.path
    return tuple(
        names[hmm[label]]
        for label, start, end in zip(path.label, path.start, path.end)
        if label >= 0
        for _ in range(start, end)
    )


def path_words(result, decoder):
    """The words on the path, sentence marks included."""
    of_arc = [*(decoder.graph.words[i] for i in decoder.graph.arrays.word_label), reference.NEW_SENTENCE]
    return tuple(of_arc[-2 - label] for label in result.path.label if label < -1)


@dataclass
class Case:
    """A random graph, model and scores; expected: what the definition finds, word sequence -> reference.Found."""

    decoder: Decoder
    scores: np.ndarray
    graph: reference.Graph
    lm_cost: Callable | None
    weights: dict

    def search_all(self, frames, only=None):
        return reference.search_all(self.graph, frames, self.lm_cost, **self.weights, only=only)

    @cached_property
    def expected(self):
        return self.search_all(graphs.as_frames(self.scores, self.graph))

    @property
    def best(self):
        return min(self.expected.items(), key=lambda item: item[1].cost)


def random_case(seed, integers=False, own_states=False, sentences=False):
    """sentences: whether another sentence may follow one that has ended."""
    rng = np.random.default_rng(seed)
    graph = graphs.random_graph(rng, reference, integers, own_states=own_states or (sentences and seed % 4 > 0))
    if sentences:
        graph = graphs.with_an_hmm_state(rng, graph)
    num_frames = int(rng.integers(5, 7) if sentences else rng.integers(1, 8))
    scores = graphs.random_scores(rng, graph, num_frames, integers) * np.float32(1 + 9 * sentences)
    weights = {"acweight": 1.0, "lm_scale": 1.0, "word_penalty": 0.0}
    words = sorted(word for word in graph.lookahead if word not in ("<s>", "</s>"))
    lm, lm_cost = None, None
    if integers:
        lm, lm_cost = graphs.integer_bigram(rng, words)
    elif rng.random() < 0.9:
        vocabulary, orders = graphs.random_orders(rng, words, int(rng.integers(1, 4)))
        lm, lm_cost = LanguageModel.from_arpa(graphs.make_arpa(vocabulary, orders)), reference.arpa_cost(orders)
        weights = {"acweight": float(rng.uniform(0.1, 1)), "lm_scale": float(rng.uniform(0.5, 2)), "word_penalty": 0.3}
    if sentences:
        weights["new_sentence"] = float(rng.integers(0, 2)) if integers else float(rng.uniform(0, 1))
    decoder = Decoder(graphs.compiled(graph), lm, SearchOptions(**{**UNPRUNED, **weights}))
    return Case(decoder, scores, graph, lm_cost, weights)


@pytest.mark.parametrize("sentences", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", range(200))
def test_search_without_pruning_finds_the_best_path_of_the_definition(seed, sentences):
    case = random_case(seed, sentences=sentences)
    result = case.decoder.decode(case.scores)
    if not case.expected:
        assert result.reason == "no token reached a final state"
        return
    words, best = case.best
    assert result.reason == ""
    assert result.cost == pytest.approx(best.cost, abs=1e-5)
    assert path_words(result, case.decoder) == words
    assert frame_states(result, case.decoder) == best.states
    assert result.path.cost.sum() == pytest.approx(result.cost, abs=1e-9)


@pytest.mark.parametrize("sentences", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", range(100))
def test_search_with_ties_has_exactly_the_cost_of_the_definition(seed, sentences):
    case = random_case(seed, integers=True, sentences=sentences)
    result = case.decoder.decode(case.scores)
    if not case.expected:
        assert result.reason == "no token reached a final state"
        return
    assert result.cost == case.best[1].cost
    assert case.expected[path_words(result, case.decoder)].cost == result.cost
    assert result.path.cost.sum() == result.cost


@pytest.mark.slow
def test_random_cases_are_not_trivial():
    cases = [random_case(seed) for seed in range(50)]
    assert sum(bool(case.expected) for case in cases) > 45
    assert sum(len(case.best[0]) >= 2 for case in cases if case.expected) > 15
    cases = [random_case(seed, sentences=True) for seed in range(100)]
    assert sum(reference.NEW_SENTENCE in case.best[0] for case in cases if case.expected) > 5


def test_sentences_in_a_graph_whose_words_lead_back_to_the_start():
    """A token that comes to the start state over two word arcs is there after one that begins a sentence."""
    arcs = [(0, 3, "[s0]", 0.5), (0, 2, "[s1]", 0.1), (2, 3, "[s2]", 0.2), (3, 4, "z", 0.3), (4, 0, "y", 0.4)]
    transitions = {f"s{i}": (math.log(0.6), math.log(0.4)) for i in range(3)}
    graph = reference.Graph(arcs, {2: 0.7}, 0, transitions, {"y": 0.0, "z": 0.0})
    decoder = Decoder(graphs.compiled(graph), None, SearchOptions(**UNPRUNED, new_sentence=0.2))
    for seed in range(40):
        scores = 5 * graphs.random_scores(np.random.default_rng(seed), graph, 5, False)
        frames = graphs.as_frames(scores, graph)
        best = min(found.cost for found in reference.search_all(graph, frames, None, new_sentence=0.2).values())
        for lattice_beam in (None, 1e9):
            assert decoder.with_options(lattice_beam=lattice_beam).decode(scores).cost == pytest.approx(best, abs=1e-5)
