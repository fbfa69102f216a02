"""Look-ahead over many next words, where the least cost of a history's words comes from blocks of sorted n-grams."""

import math

import numpy as np
import pytest

from decoder.graph.compiled_graph import precompile
from decoder.lm.language_model import LanguageModel
from decoder.search.decoder import Decoder, SearchOptions
from decoder.search.kernels.lookahead import BLOCK, MAX_SCANNED
from tests.decoder import graphs
from tests.decoder.search.test_decoder import UNPRUNED
from tests.decoder.search.test_lm_ahead import (
    TOLERANCE,
    ahead_at,
    least_by_definition,
    state_after,
    summed_by_definition,
)

NUM_WORDS = 75
WORDS = [f"w{i:02}" for i in range(NUM_WORDS)]
SCALE = 1.75


def wide_graph(rng, num_groups):
    """A tree of the words: the start, `num_groups` second states, each before its share of the words.

    Every fifth word has a second pronunciation, in another group.  Returns (graph, acceptor state -> words below it).
    """
    arcs, below, state = [], {0: set(WORDS)}, num_groups + 1
    end = 10_000
    for i, word in enumerate(WORDS):
        for group in {i % num_groups, *([(i + 1) % num_groups] if i % 5 == 0 else [])}:
            below.setdefault(1 + group, set()).add(word)
            state += 1
            arcs.append((1 + group, state, f"[b{i}]", float(rng.random())))
            arcs.append((state, end, word, float(rng.random())))
    arcs += [(0, 1 + group, f"[a{group}]", float(rng.random())) for group in range(num_groups)]
    arcs.append((end, end + 1, "[e]", 0.0))
    lookahead = {word: float(np.float32(rng.random())) for word in WORDS}
    return arcs, below, {end + 1: 0.0}, lookahead


def wide_trigram(rng):
    """An ARPA model's tables in which histories list 0 to 75 of the words, and words are dear where they are listed."""
    vocabulary = ["<s>", "</s>", *WORDS]
    orders = [{(word,): (-float(2 + rng.random()), -float(rng.random())) for word in vocabulary}]
    histories = [("<s>",), *((word,) for word in WORDS[:12])]
    for share in (0.5, 0.8):
        listed = {}
        for history in histories:
            orders[-1].setdefault(history, (-2.0, -float(rng.random())))
            for word in WORDS:
                if rng.random() < share:
                    listed[(*history, word)] = (-float(3 * rng.random()), -float(rng.random()))
        orders.append(listed)
        histories = [("<s>", word) for word in WORDS[:6] if ("<s>", word) in listed]
    return vocabulary, orders


def path_costs(arcs, source, words):
    """word -> least cost of the arcs from `source` through its word arc."""
    cost = dict.fromkeys(words, math.inf)
    waiting = [(source, 0.0)]
    while waiting:
        here, paid = waiting.pop()
        for s, t, label, price in arcs:
            if s != here:
                continue
            if label[0] == "[":
                waiting.append((t, paid + price))
            else:
                cost[label] = min(cost[label], paid + price)
    return cost


@pytest.mark.parametrize("num_groups", [1, 2, 3])
def test_cost_ahead_of_many_words_after_two_words_is_that_of_the_definition(num_groups):
    rng = np.random.default_rng(num_groups)
    arcs, below, finals, lookahead = wide_graph(rng, num_groups)
    vocabulary, orders = wide_trigram(rng)
    lm = LanguageModel.from_arpa(graphs.make_arpa(vocabulary, orders))
    graph = precompile(graphs.make_acceptor(arcs, finals), None, lookahead)
    decoder = Decoder(graph, lm, SearchOptions(**UNPRUNED | {"lm_scale": SCALE}))
    summing = decoder.with_options(lookahead_sums=True)
    tables = decoder._tables.look_ahead
    assert (tables.ranges["high"] - tables.ranges["low"]).max() > max(MAX_SCANNED, BLOCK)
    # An n-gram is stored once, although every fifth word stands at two places of the graph.
    assert len(tables.place) == lm.arrays.first_arc[-1] - lm.arrays.first_arc[1]
    arrays = graph.arrays
    start_arcs = range(arrays.first_emitting[graph.start], arrays.first_emitting[graph.start + 1])
    state_of = {graph.states[arrays.position_state[arrays.emitting_target[arc]]]: arc for arc in start_arcs}
    places = {0: graph.start}
    for group in range(num_groups):
        places[1 + group] = arrays.position_exit[arrays.emitting_target[state_of[f"a{group}"]]]
    before = [("<s>",), *(("<s>", word) for word in WORDS[:14])]
    before += [("<s>", first, second) for first in WORDS[:7] for second in WORDS[:7]]
    for source, state in places.items():
        charged = path_costs(arcs, source, below[source])
        least_charge = min(cost - lookahead[word] for word, cost in charged.items())
        for history in before:
            least = least_by_definition(orders, history, below[source])
            found = ahead_at(decoder, state, state_after(lm, history))
            assert found == pytest.approx(SCALE * least + least_charge, abs=TOLERANCE), (source, history)
            total = summed_by_definition(lm, state_after(lm, history), below[source])
            found = ahead_at(summing, state, state_after(lm, history))
            assert found == pytest.approx(SCALE * total + least_charge, abs=TOLERANCE), (source, history)


def test_a_beam_that_looks_ahead_over_many_words_keeps_the_best_path():
    """Two words among 75; the look-ahead is a lower bound, so a beam of the words' own spread loses nothing."""
    rng = np.random.default_rng(7)
    arcs, _, finals, lookahead = wide_graph(rng, 3)
    (last,) = finals
    arcs.append((last, 0, "[s]", 0.25))
    vocabulary, orders = wide_trigram(rng)
    lm = LanguageModel.from_arpa(graphs.make_arpa(vocabulary, orders))
    graph = precompile(graphs.make_acceptor(arcs, finals), None, lookahead)
    decoder = Decoder(graph, lm, SearchOptions(**UNPRUNED | {"lm_scale": SCALE}))
    scores = np.asfortranarray(rng.normal(size=(len(graph.states), 9)), np.float32)
    scores[graph.states.index("s"), 4] = 30.0  # between two words
    exact = decoder.with_options(lm_lookahead=False).decode(scores)
    assert len(exact.text) == 2
    for beam in (20.0, math.inf):
        looking = decoder.with_options(beam=beam).decode(scores)
        assert (looking.cost, looking.text) == (exact.cost, exact.text)
        assert looking.tokens_per_frame <= exact.tokens_per_frame
