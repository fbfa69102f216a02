"""Lattices: every path is a path of the search with its exact cost, and the best one is there."""

import math

import numpy as np
import pytest

from tests.decoder import graphs, reference
from tests.decoder.lattices.search_paths import best_path
from tests.decoder.search.test_decoder import frame_states, path_words, random_case


def paths(lattice, limit=300):
    """Up to `limit` paths from start to end, each a list of links."""
    leaving = [np.flatnonzero(lattice.start == node).tolist() for node in range(lattice.num_nodes)]
    waiting, found = [(0, [])], []
    while waiting and len(found) < limit:
        node, links = waiting.pop()
        if node == lattice.num_nodes - 1:
            found.append(links)
        for link in leaving[node]:
            waiting.append((int(lattice.end[link]), [*links, link]))
    return found


def spelled(lattice, links, decoder):
    """(words, HMM state of every frame) of a path."""
    of_link = [*decoder.graph.words, reference.NEW_SENTENCE, None]
    words = tuple(of_link[word] for word in lattice.word[links] if word != -1)
    steps = [step for link in links for step in lattice.states[link]]
    assert [step[1] for step in steps] == [0, *(step[2] for step in steps[:-1])][: len(steps)]  # they tile the frames
    return words, tuple(decoder.graph.states[s] for s, start, end in steps for _ in range(start, end))


def sentences_of(words):
    """The words of each sentence."""
    if reference.NEW_SENTENCE not in words:
        return [words]
    end = words.index(reference.NEW_SENTENCE)
    return [words[:end], *sentences_of(words[end + 1 :])]


@pytest.mark.parametrize("sentences", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", range(200))
def test_lattice_holds_the_best_path_with_its_cost(seed, sentences):
    case = random_case(seed, integers=seed % 2 == 1, sentences=sentences)
    result = case.decoder.with_options(lattice_beam=1e9).decode(case.scores)
    if not case.expected:
        assert result.lattice is None
        return
    cost, links = best_path(result.lattice)
    assert cost == pytest.approx(result.cost, abs=0 if seed % 2 else 1e-9)
    words, states = spelled(result.lattice, links, case.decoder)
    assert case.expected[words].cost == pytest.approx(result.cost, abs=1e-5)
    if seed % 2 == 0:
        assert words == path_words(result, case.decoder)
        assert states == frame_states(result, case.decoder)


@pytest.mark.slow
@pytest.mark.parametrize("sentences", [False, True])
def test_every_lattice_path_is_a_path_of_the_graph_with_its_cost(sentences):
    num_paths = num_equal = 0
    for seed in range(40):
        case = random_case(seed, own_states=True, sentences=sentences)
        result = case.decoder.with_options(lattice_beam=1e9).decode(case.scores)
        for links in paths(result.lattice, 50) if case.expected else ():
            words, states = spelled(result.lattice, links, case.decoder)
            # Only this path's words and HMM states remain possible, so the definition finds the cost of this path, or
            # now and then of another one with the same words between other states.
            allowed = [
                {name: value if name == state else -math.inf for name, value in frame.items()}
                for frame, state in zip(graphs.as_frames(case.scores, case.graph), states)
            ]
            expected = case.search_all(allowed, only=words)[words].cost
            cost = result.lattice.cost[links].sum()
            assert cost > expected - 1e-5, seed
            num_paths, num_equal = num_paths + 1, num_equal + (cost < expected + 1e-5)
            if case.lm_cost:
                ln_p = 0.0
                for sentence in sentences_of(words):
                    end = [] if sentence[-1:] == ("</s>",) else ["</s>"]
                    ln_p -= sum(case.lm_cost(sentence[:i], word) for i, word in enumerate([*sentence, *end]))
                assert result.lattice.lm[links].sum() == pytest.approx(ln_p, abs=1e-5), seed
    assert num_paths > 400
    assert num_equal > 0.98 * num_paths
