"""Lattices link by link: the cost of each one, and which paths a finite lattice beam keeps."""

import math

import numpy as np
import pytest

from decoder.search.kernels.lattice import kept_arrivals, link_states
from decoder.search.kernels.token_store import ARRIVAL, NODE_LABEL, STEP, Trace
from tests.decoder.lattices.search_paths import best_path
from tests.decoder.search.test_decoder import random_case
from tests.decoder.search.test_lattice import paths, spelled
from tests.decoder.search.test_options import make_decoder

TOLERANCE = 1e-5


def costs_to_the_end(lattice):
    """(N,) least cost from each node to the end."""
    after = np.full(lattice.num_nodes, np.inf)
    after[-1] = 0.0
    for link in np.argsort(-lattice.end, kind="stable"):
        start = lattice.start[link]
        after[start] = min(after[start], after[lattice.end[link]] + lattice.cost[link])
    return after


def paths_within(lattice, decoder, limit):
    """(words, HMM state of every frame) -> cost, of the paths that cost at most `limit`."""
    after = costs_to_the_end(lattice)
    waiting, found = [(0, 0.0, [])], {}
    while waiting:
        node, cost, links = waiting.pop()
        if node == lattice.num_nodes - 1:
            key = spelled(lattice, links, decoder)
            found[key] = min(found.get(key, math.inf), cost)
        for link in np.flatnonzero(lattice.start == node):
            through = cost + lattice.cost[link]
            if through + after[lattice.end[link]] <= limit:
                waiting.append((int(lattice.end[link]), through, [*links, link]))
    return found


@pytest.mark.parametrize("beam", [0.0, 0.7, 2.5])
def test_a_finite_beam_keeps_every_path_within_it(beam):
    num_paths = num_dropped = 0
    for seed in range(60):
        case = random_case(seed, own_states=True)
        full, pruned = (
            case.decoder.with_options(lattice_beam=width).decode(case.scores).lattice for width in (1e9, beam)
        )
        if full is None:
            assert pruned is None
            continue
        limit = best_path(full)[0] + beam
        kept = paths_within(pruned, case.decoder, limit + TOLERANCE)
        assert kept == pytest.approx(paths_within(full, case.decoder, limit + TOLERANCE), abs=1e-9)
        num_paths, num_dropped = num_paths + len(kept), num_dropped + (pruned.num_links < full.num_links)
    assert num_paths > 50 + 20 * beam  # the test would say nothing if there were one path each, or none dropped
    assert num_dropped > 40


def word_path(graph, word, states, source):
    """[(cost of the arcs, acceptor state after them)]: ways from `source` through the states and one word arc, if any.

    Every emitting arc has an HMM state of its own, so that only the place of the word arc is open.
    """
    arc_of = {label[1:-1]: (s, t, cost) for s, t, label, cost in graph.arcs if label[0] == "["}
    found = []
    for place in range(len(states) + 1) if word else [None]:
        ways = [(0.0, source)]
        for i in range(len(states) + 1):
            if i == place:
                across = [(s, t, price) for s, t, label, price in graph.arcs if label == word]
                ways = [(cost + price, t) for cost, at in ways for s, t, price in across if s == at]
            if i < len(states):
                s, t, price = arc_of[states[i]]
                ways = [(cost + price, t) for cost, at in ways if at == s]
        found += ways
    return found


def test_each_link_has_the_cost_and_the_ngram_probability_of_its_own_word_and_states():
    num_links = 0
    for seed in range(100):
        case = random_case(seed, own_states=True)
        lattice = case.decoder.with_options(lattice_beam=3.0).decode(case.scores).lattice
        frames = np.asarray(case.scores, np.float64)
        rows = {name: row for row, name in enumerate(case.graph.transitions)}
        for links in paths(lattice, 20) if lattice is not None else ():
            at, words = {case.graph.start}, ()
            for link in links:
                word = case.decoder.graph.words[lattice.word[link]] if lattice.word[link] >= 0 else ""
                states = [(case.decoder.graph.states[s], begin, end) for s, begin, end in lattice.states[link]]
                acoustic = -case.weights["acweight"] * sum(
                    frames[rows[name], begin:end].sum() for name, begin, end in states
                )
                held = 0.0
                for name, begin, end in states:
                    stay, leave = case.graph.transitions[name]
                    held -= (end - begin - 1) * stay + leave
                ways = [way for source in at for way in word_path(case.graph, word, [s[0] for s in states], source)]
                ln_p = 0.0
                spoken = acoustic + held
                if word:
                    spoken += 0.0 if word in ("<s>", "</s>") else case.weights["word_penalty"]
                    if case.lm_cost:
                        ln_p = -case.lm_cost(words, word)
                        spoken += -case.weights["lm_scale"] * ln_p - case.graph.lookahead[word]
                    words = (*words, word)
                if link == links[-1]:
                    ways = [(cost + case.graph.finals[t], t) for cost, t in ways if t in case.graph.finals]
                    if case.lm_cost and words[-1:] != ("</s>",):
                        ended = case.lm_cost(words, "</s>")
                        ln_p, spoken = ln_p - ended, spoken + case.weights["lm_scale"] * ended
                assert ways, (seed, links)
                assert min(abs(cost + spoken - lattice.cost[link]) for cost, _ in ways) < TOLERANCE, (seed, links)
                if case.lm_cost:
                    assert lattice.lm[link] == pytest.approx(ln_p, abs=TOLERANCE)
                at = {t for _, t in ways}
                num_links += 1
    assert num_links > 500


def random_trace(rng, num_nodes):
    """A Trace of `num_nodes` nodes; step n is node n for n > 0, and its states have steps of their own."""
    steps, arrivals = [(-1, NODE_LABEL, 0)] + [(0, NODE_LABEL, n) for n in range(1, num_nodes)], []
    best = [0.0]
    for node in range(1, num_nodes):
        costs = []
        for source in {int(rng.integers(node)) for _ in range(3)}:
            previous = source
            for k in range(int(rng.integers(0, 3))):
                steps.append((previous, 10 * node + k, node))
                previous = len(steps) - 1
            costs.append(best[source] + float(rng.integers(0, 4)))
            arrivals.append((costs[-1], 0.0, node, previous, NODE_LABEL, 0))
        best.append(min(costs))
    steps, arrivals = np.array(steps, STEP), np.array(arrivals, ARRIVAL)
    return Trace(steps, arrivals, np.array([len(steps), len(arrivals)]))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("beam", [0.0, 1.0, 2.0, 5.0])
def test_the_kept_arrivals_are_those_on_a_path_within_the_beam(seed, beam):
    """Whole-numbered costs, so that paths lie exactly on the beam; every path is followed from its end."""
    trace = random_trace(np.random.default_rng(seed), 7)
    end = 6
    incoming = {node: np.flatnonzero(trace.arrivals["node"] == node).tolist() for node in range(7)}

    def origin(arrival):
        step, states = int(trace.arrivals[arrival]["previous"]), []
        while trace.steps[step]["label"] != NODE_LABEL:
            states.insert(0, step)
            step = int(trace.steps[step]["previous"])
        return step, states

    best = [min((trace.arrivals[a]["cost"] for a in incoming[node]), default=0.0) for node in range(7)]
    price = {a: trace.arrivals[a]["cost"] - best[origin(a)[0]] for node in incoming.values() for a in node}

    def walks(node):
        if node == 0:
            yield ()
        for arrival in incoming[node]:
            for before in walks(origin(arrival)[0]):
                yield (*before, arrival)

    every = [(sum(price[a] for a in walk), walk) for walk in walks(end)]
    limit = min(cost for cost, _ in every) + beam
    expected = sorted({a for cost, walk in every if cost <= limit for a in walk})
    arrival, origins, cost, length = kept_arrivals(trace, end, beam)
    assert arrival.tolist() == expected
    assert origins.tolist() == [origin(a)[0] for a in expected]
    assert cost.tolist() == [price[a] for a in expected]
    states = [origin(a)[1] for a in expected]
    assert length.tolist() == [len(steps) for steps in states]
    position, frame, step = link_states(trace, arrival, length)
    assert step.tolist() == [s for steps in states for s in steps]
    assert position.tolist() == trace.steps["label"][step].tolist()
    assert frame.tolist() == trace.steps["frame"][step].tolist()


def test_of_two_equally_cheap_paths_the_best_path_is_that_with_the_earlier_link():
    arcs = [(0, 1, "[a]", 0.0), (1, 2, "x", 1.0), (1, 2, "y", 1.0), (2, 3, "[b]", 0.0)]
    lattice = make_decoder(arcs, {3: 0.0}, lattice_beam=0.0).decode(np.zeros((2, 2), np.float32)).lattice
    cost, links = best_path(lattice)
    assert (lattice.word.tolist(), cost, links) == ([0, 1, -1], 1.0, [0, 2])


def test_a_path_exactly_on_the_lattice_beam_is_kept_and_one_beyond_is_not():
    arcs = [(0, 1, "[a]", 0.0), (1, 2, "x", 1.0), (1, 2, "y", 3.0), (1, 2, "z", 3.5), (2, 3, "[b]", 0.0)]
    decoder = make_decoder(arcs, {3: 0.0}, lattice_beam=2.0)
    lattice = decoder.decode(np.zeros((2, 2), np.float32)).lattice
    assert [decoder.graph.words[word] for word in lattice.word if word >= 0] == ["x", "y"]
    assert lattice.cost.tolist() == [1.0, 3.0, 0.0]
