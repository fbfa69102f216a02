"""Utterances of which no path reaches a final state: wider beams, and the best unfinished path."""

import math

import numpy as np
import pytest

from decoder.lm.language_model import LanguageModel
from decoder.search import Decoder, SearchOptions
from decoder.search.search_stream import SearchStream
from tests.decoder import graphs, reference
from tests.decoder.lattices.search_paths import best_path
from tests.decoder.search.test_decoder import UNPRUNED, frame_states, path_words, random_case
from tests.decoder.search.test_lattice import paths, spelled
from tests.decoder.search.test_options import make_decoder, two_words
from tests.decoder.search.test_search_stream import assert_same, in_parts

# From the start, u costs 3 more than v in the first frame, but only u leads to the end.
ARCS = [(0, 1, "[v]", 0.0), (0, 2, "[u]", 3.0), (2, 3, "[e]", 0.0), (1, 1, "[v]", 0.0)]
SCORES = np.zeros((3, 3), np.float32, order="F")


@pytest.mark.parametrize(("beam", "needed"), [(3.0, 0), (1.6, 1), (0.8, 2), (0.7, 3)])
def test_beam_is_doubled_until_a_path_is_final(beam, needed):
    decoder = make_decoder(ARCS, {3: 0.0}, beam=beam)
    for widenings in range(4):
        result = decoder.with_options(widenings=widenings).decode(SCORES)
        assert result.widenings == min(needed, widenings)
        assert (result.reason == "") == (widenings >= needed)
    exact = decoder.with_options(beam=beam * 2**needed).decode(SCORES)
    assert (result.cost, result.path.label.tolist()) == (exact.cost, exact.path.label.tolist())
    assert result.tokens_per_frame == exact.tokens_per_frame


def test_maximum_of_tokens_is_doubled_too():
    decoder = make_decoder(ARCS, {3: 0.0}, max_tokens=1, widenings=1)
    assert decoder.decode(SCORES).widenings == 1
    largest = make_decoder(ARCS, {3: 0.0}, max_tokens=2**31 - 1, widenings=2)
    assert largest.decode(SCORES[:, :1]).widenings == 2


def test_word_end_beam_is_widened_with_the_beam():
    arcs = [(0, 1, "[a]", 0.0), (1, 2, "x", 4.0), (2, 3, "[b]", 0.0), (1, 4, "[c]", 0.0)]
    decoder = make_decoder(arcs, {3: 0.0}, beam=10.0, word_end_beam_frac=0.25, widenings=2)
    result = decoder.decode(np.zeros((3, 4), np.float32))
    assert (result.text, result.widenings) == (["x"], 1)
    assert decoder.with_options(word_end_beam_frac=0.0).decode(np.zeros((3, 4), np.float32)).reason


def test_lattice_is_that_of_the_wider_beam():
    decoder = make_decoder(ARCS, {3: 0.0}, beam=1.6, lattice_beam=5.0, widenings=2)
    lattice = decoder.decode(SCORES).lattice
    assert best_path(lattice)[0] == 3.0


def test_no_wider_beam_is_tried_across_a_frame_that_no_state_can_have():
    scores = np.zeros((4, 5), np.float32, order="F")
    scores[:, 3] = -np.inf
    result = two_words(widenings=2).decode(scores)
    assert result.widenings == 0


def test_path_up_to_the_frame_in_which_every_token_died():
    scores = np.zeros((4, 8), np.float32, order="F")
    scores[1, 2:] = 3.0  # x
    scores[:, 5] = -np.inf
    decoder = two_words(partial=True)
    result = decoder.decode(scores)
    assert result.reason == "every token died in frame 5: no state in reach has a score above -inf"
    assert (result.num_frames, path_words(result, decoder)) == (8, ("x",))
    assert result.path.end.max() == 5
    assert len(frame_states(result, decoder)) == 5
    assert result.path.cost.sum() == pytest.approx(result.cost)
    scores[:, 0] = -np.inf
    first = decoder.decode(scores)
    assert (first.reason[:28], first.cost, first.words) == ("every token died in frame 0:", math.inf, [])


def test_tokens_die_at_the_end_of_states_without_a_loop():
    """The message holds for them, too: the scores of all states are 0."""
    once = dict.fromkeys("ab", (-math.inf, 0.0))
    decoder = make_decoder([(0, 1, "[a]", 0.0), (1, 2, "x", 0.0), (2, 3, "[b]", 0.0)], {3: 0.0}, once, partial=True)
    result = decoder.decode(np.zeros((2, 3), np.float32, order="F"))
    assert result.reason == "every token died in frame 2: no state in reach has a score above -inf"
    assert path_words(result, decoder) == ("x",)


def test_no_frames_have_no_unfinished_path():
    decoder = two_words(partial=True, lattice_beam=5.0)
    scores = np.zeros((4, 0), np.float32)
    for result in (decoder.decode(scores), SearchStream(decoder.with_options(lattice_beam=None)).finish()):
        assert (result.reason, result.cost, result.words) == ("no token reached a final state", math.inf, [])
        assert result.lattice is None


def dying(seed, last):
    """A random case with eight frames or more, of which no state can have frame `last` or a later one."""
    case = random_case(seed)
    scores = np.tile(case.scores, 8)
    scores[:, last:] = -np.inf
    return case.decoder.with_options(partial=True), scores


@pytest.mark.parametrize("seed", range(40))
def test_streams_end_with_the_same_unfinished_path(seed):
    rng = np.random.default_rng(seed)
    decoder, scores = dying(seed, seed % 7)
    for options in ({}, {"beam": 2.0}, {"max_tokens": 2}):
        chosen = decoder.with_options(**options)
        expected = chosen.decode(scores)
        assert expected.reason
        result, partials = in_parts(chosen, scores, rng, telling=seed % 2 == 0)
        assert_same(result, expected)
        assert all(partial.stable == expected.text[: partial.num_stable] for partial in partials)


def test_lattice_joins_all_paths_that_are_alive():
    decoder = two_words(partial=True, lattice_beam=10.0)
    result = decoder.decode(np.zeros((4, 2), np.float32, order="F"))
    assert result.reason
    found = {spelled(result.lattice, links, decoder)[0] for links in paths(result.lattice)}
    assert found == {(), ("x",), ("y",)}


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("lookahead", [False, True])
def test_lattice_holds_the_best_unfinished_path(seed, dies, lookahead):
    """Every path covers all frames, and that of the result is among them; the best one is chosen by cost + ahead."""
    if dies:
        decoder, scores = dying(seed, 1 + seed % 5)
    else:
        case = random_case(seed)
        decoder, scores = case.decoder.with_options(partial=True, beam=2.0), case.scores
    decoder = decoder.with_options(lm_lookahead=lookahead)
    result = decoder.with_options(lattice_beam=1e6).decode(scores)
    plain = decoder.decode(scores)
    assert (result.reason, result.cost) == (plain.reason, plain.cost)
    np.testing.assert_array_equal(result.path.label, plain.path.label)
    if not result.path.label.size:
        assert result.lattice is None
        return
    lattice, wanted = result.lattice, (path_words(result, decoder), frame_states(result, decoder))
    costs = {}
    for links in paths(lattice, 2000):
        path = spelled(lattice, links, decoder)
        assert len(path[1]) == len(wanted[1])
        costs[path] = min(costs.get(path, math.inf), lattice.cost[links].sum())
    if len(costs) < 2000:
        if not lookahead:
            assert costs[wanted] == pytest.approx(result.cost, abs=1e-6)
        assert best_path(lattice)[0] == pytest.approx(min(costs.values()), abs=1e-6)
        assert best_path(lattice)[0] == pytest.approx(costs[wanted], abs=1e-6)


def endless(seed):
    """A random case whose end is farther away than its scores reach, and a decoder with a trigram at most."""
    rng = np.random.default_rng(seed)
    graph = graphs.random_graph(rng, reference)
    name, end = next(iter(graph.transitions)), 1 + max(max(arc[:2]) for arc in graph.arcs)
    chain = [(end + i, end + i + 1, f"[{name}]", 0.0) for i in range(8)]
    arcs = [*graph.arcs, *((state, end, f"[{name}]", 0.0) for state in graph.finals), *chain]
    graph = reference.Graph(arcs, {end + 8: 0.0}, graph.start, graph.transitions, graph.lookahead)
    words = sorted(word for word in graph.lookahead if word not in ("<s>", "</s>"))
    vocabulary, orders = graphs.random_orders(rng, words, 1 + seed % 3)
    lm = LanguageModel.from_arpa(graphs.make_arpa(vocabulary, orders))
    options = SearchOptions(**{**UNPRUNED, "acweight": 0.3, "lm_scale": 2.0, "partial": True, "lattice_beam": 1e6})
    return Decoder(graphs.compiled(graph), lm, options), graphs.random_scores(rng, graph, 1 + seed % 7)


@pytest.mark.parametrize("seed", range(20))
def test_best_path_of_the_lattice_is_that_of_the_result(seed):
    """The best token is chosen with the look-ahead cost of the next word, and so is the lattice's best path."""
    decoder, scores = endless(seed)
    result = decoder.decode(scores)
    assert result.reason == "no token reached a final state"
    best = spelled(result.lattice, best_path(result.lattice)[1], decoder)
    assert best == (path_words(result, decoder), frame_states(result, decoder))
