"""Look-ahead by n-grams against its definition: sets of next words and least costs worked out state by state."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from decoder.graph.compiled_graph import precompile
from decoder.lm.collection import interpolated
from decoder.lm.language_model import LanguageModel
from decoder.search.decoder import Decoder, SearchOptions
from decoder.search.kernels.lookahead import (
    HISTORY,
    NO_WORD_COST,
    RANGE,
    cost_ahead,
    least_between,
    least_cost,
    next_words,
    plain_cost_ahead,
    with_minima,
)
from decoder.search.lm_ahead import look_ahead, minima_levels, without_duplicates
from readers.errors import GraphError
from readers.language.att import EPSILON
from tests.decoder import graphs, reference
from tests.decoder.search.test_decoder import UNPRUNED, random_case

TOLERANCE = 1e-5


def next_arcs(graph, state, epsilon=None):
    """[(word, cost from `state` through the word arc)], "" = the end: the cheapest way to each word arc.

    Arcs of the word `epsilon` lie on the way.
    """

    def is_word(label):
        return label[0] != "[" and label != epsilon

    cost, waiting = {state: 0.0}, [state]
    while waiting:
        here = waiting.pop()
        for source, target, label, price in graph.arcs:
            if source == here and not is_word(label) and cost[here] + price < cost.get(target, math.inf):
                cost[target] = cost[here] + price
                waiting.append(target)
    ends = [("", cost[state] + price) for state, price in graph.finals.items() if state in cost]
    return ends + [(w, cost[s] + price) for s, _, w, price in graph.arcs if s in cost and is_word(w)]


def least_by_definition(orders, before, words):
    """Least -ln P over the words, each by the best of what any history down to the empty one gives it."""
    best = math.inf
    for word in words:
        history, backed_off = tuple(before)[-(len(orders) - 1) :] if len(orders) > 1 else (), 0.0
        while True:
            listed = orders[len(history)].get((*history, word))
            if listed is not None:
                best = min(best, -(backed_off + listed[0]) * reference.LN_10)
            if not history:
                break
            backed_off += orders[len(history) - 1].get(history, (None, 0.0))[1]
            history = history[1:]
    return best


def histories(words, order):
    yield ("<s>",)
    for first in words:
        yield ("<s>", first)
        for second in words:
            yield ("<s>", first, second)


def state_after(model, words):
    state = model.start_state
    for word in words[1:]:
        _, state = model.step(state, model.word_id(word))
    return state


def ahead_at(decoder, state, history):
    shared, lm = decoder._tables, decoder.lm.arrays
    tables = shared.summed_look_ahead if decoder.options.lookahead_sums else shared.look_ahead
    key, scale = np.int64(history) << 32 | np.int64(tables.state_set[state]), decoder.options.lm_scale
    found = cost_ahead(tables, lm, scale, key)
    if tables.mixed.shape[0] + tables.unknown.shape[0] == 0:
        arrays = (*tables[:2], *tables[3:7], tables.is_sum)
        assert plain_cost_ahead(*arrays, scale, key) == found
    return found


def single_case(seed):
    """A random graph, and a model of one to three words of history with its tables."""
    rng = np.random.default_rng(seed)
    graph = graphs.random_graph(rng, reference, marks=False)
    words = sorted(word for word in graph.lookahead if word not in ("<s>", "</s>"))
    vocabulary, orders = graphs.random_orders(rng, words, int(rng.integers(1, 4)))
    lm = LanguageModel.from_arpa(graphs.make_arpa(vocabulary, orders))
    scale = float(rng.uniform(0.5, 2))
    return (
        graph,
        words,
        lm,
        orders,
        Decoder(graphs.compiled(graph), lm, SearchOptions(**UNPRUNED | {"lm_scale": scale})),
    )


@pytest.mark.parametrize("seed", range(60))
def test_cost_ahead_is_that_of_the_definition(seed):
    graph, words, lm, orders, decoder = single_case(seed)
    for state in range(decoder.graph.num_states):
        arcs = next_arcs(graph, state)
        for before in histories(words, len(orders)):
            found = ahead_at(decoder, state, state_after(lm, before))
            if not arcs:
                assert found == 0
                continue
            charged = min(cost - graph.lookahead[word] if word else cost for word, cost in arcs)
            least = least_by_definition(orders, before, {word or "</s>" for word, _ in arcs})
            assert found == pytest.approx(decoder.options.lm_scale * least + charged, abs=TOLERANCE)


def summed_by_definition(lm, state, words):
    """-ln of the sum of the probabilities of the words by every history of the automaton that lists them."""
    ids = [lm.word_id(word) for word in words]
    arrays = lm.arrays
    probability, backed_off = 0.0, 0.0
    while True:
        arcs = slice(arrays.first_arc[state], arrays.first_arc[state + 1])
        listed = np.isin(arrays.word[arcs], ids)
        probability += np.exp(-backed_off - arrays.cost[arcs][listed].astype(float)).sum()
        if state == 0:
            return -math.log(probability)
        backed_off += arrays.backoff_cost[state]
        state = arrays.backoff_state[state]


@pytest.mark.parametrize("seed", range(20))
def test_sums_ahead_are_those_of_the_definition(seed):
    """Costs of the graph are left out if it has charged no look-ahead."""
    graph, words, lm, orders, decoder = single_case(seed)
    if seed % 2:
        graph = replace(graph, lookahead=dict.fromkeys(graph.lookahead, 0.0))
    decoder = Decoder(graphs.compiled(graph), lm, decoder.options).with_options(lookahead_sums=True)
    counts = decoder.graph.lookahead.any()
    for state in range(decoder.graph.num_states):
        arcs = next_arcs(graph, state)
        charged = min((cost - graph.lookahead[word] if word else cost for word, cost in arcs if counts), default=0)
        for before in histories(words, len(orders)):
            history = state_after(lm, before)
            total = summed_by_definition(lm, history, {word or "</s>" for word, _ in arcs}) if arcs else 0
            expected = decoder.options.lm_scale * total + charged
            assert ahead_at(decoder, state, history) == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize(("costs", "beam", "word_beam"), [((-3.0, 0.0), 1.0, 1.0), ((0.0, -3.0), 3.0, 1.2)])
def test_sums_do_not_prune_an_arc_of_negative_cost_for_what_was_seen_before_it(costs, beam, word_beam):
    """x costs 3 less in the graph, on the way to it or at its word arc; its state scores 4.5 less."""
    words = {("<s>",): (-99, 0), ("</s>",): (0, 0), ("x",): (math.log10(0.95), 0), ("y",): (math.log10(0.05), 0)}
    lm = LanguageModel.from_arpa(graphs.make_arpa(["<s>", "</s>", "x", "y"], [words]))
    arcs = [(0, 1, "[y]", 0.0), (1, 3, "y", 0.0), (0, 2, "[x]", costs[0]), (2, 3, "x", costs[1]), (3, 4, "[e]", 0.0)]
    options = SearchOptions(
        **{**UNPRUNED, "lookahead_sums": True, "beam": beam, "word_end_beam_frac": word_beam / beam}
    )
    decoder = Decoder(precompile(graphs.make_acceptor(arcs, {4: 0.0})), lm, options)
    scores = np.zeros((len(decoder.graph.states), 2), np.float32, order="F")
    scores[decoder.graph.states.index("x"), 0] = -4.5
    assert decoder.decode(scores).text == ["x"]


@pytest.mark.parametrize("seed", range(20))
def test_arcs_of_epsilon_are_seen_through(seed):
    """As in graphs of Kaldi, where such arcs stand between words."""
    graph, words, lm, orders, decoder = single_case(seed)
    epsilon = words[0]
    names = [EPSILON if word == epsilon else word for word in decoder.graph.words]
    decoder = Decoder(replace(decoder.graph, words=names), lm, decoder.options)
    before = ("<s>", words[-1])
    for state in range(decoder.graph.num_states):
        arcs = next_arcs(graph, state, epsilon)
        found = ahead_at(decoder, state, state_after(lm, before))
        if not arcs:
            assert found == 0
            continue
        charged = min(cost - graph.lookahead[word] if word else cost for word, cost in arcs)
        least = least_by_definition(orders, before, {word or "</s>" for word, _ in arcs})
        assert found == pytest.approx(decoder.options.lm_scale * least + charged, abs=TOLERANCE)


@pytest.mark.parametrize("seed", range(40))
def test_no_path_undercuts_what_is_seen_ahead(seed):
    """What is paid and what is seen ahead grow along every arc; at a word arc that is no more than the word's cost."""
    _, words, lm, orders, decoder = single_case(seed)
    decoder = decoder.with_options(lookahead_sums=seed % 2 == 1)
    arrays, options = decoder.graph.arrays, decoder.options
    for before in histories(words, len(orders)):
        history = state_after(lm, before)
        ahead = [ahead_at(decoder, state, history) for state in range(decoder.graph.num_states)]
        for source in range(decoder.graph.num_states):
            for arc in range(arrays.first_emitting[source], arrays.first_emitting[source + 1]):
                target = arrays.position_exit[arrays.emitting_target[arc]]
                if ahead[target] < NO_WORD_COST and decoder._tables.look_ahead.state_set[target]:
                    assert arrays.emitting_cost[arc] + ahead[target] >= ahead[source] - TOLERANCE
            for arc in range(arrays.first_word[source], arrays.first_word[source + 1]):
                word = decoder.graph.words[arrays.word_label[arc]]
                cost = options.lm_scale * lm.step(history, lm.word_id(word))[0]
                cost += arrays.word_cost[arc] - decoder.graph.lookahead[arrays.word_label[arc]]
                assert ahead[source] <= cost + TOLERANCE


@pytest.mark.parametrize("seed", range(40))
def test_of_a_mixture_and_of_unknown_words_it_is_never_too_much(seed):
    rng = np.random.default_rng(seed)
    graph = graphs.random_graph(rng, reference, marks=False)
    words = sorted(word for word in graph.lookahead if word not in ("<s>", "</s>"))
    models = []
    for _ in range(1 + seed % 3):
        known = [word for word in words if rng.random() < 0.6]
        vocabulary, orders = graphs.random_orders(rng, [*known, "<unk>"], int(rng.integers(1, 4)))
        models.append(LanguageModel.from_arpa(graphs.make_arpa(vocabulary, orders)))
    lm = interpolated(models, rng.dirichlet(np.ones(len(models))).tolist()) if seed % 3 else models[0]
    decoder = Decoder(graphs.compiled(graph), lm, SearchOptions(**UNPRUNED))
    some = 0
    for state in range(decoder.graph.num_states):
        arcs = next_arcs(graph, state)
        for before in histories(words, 3):
            history = state_after(lm, before)
            costs = [
                lm.step(history, lm.word_id(word or "</s>"))[0] + cost - (graph.lookahead[word] if word else 0)
                for word, cost in arcs
            ]
            found = ahead_at(decoder, state, history)
            assert not arcs or found <= min(costs) + TOLERANCE
            some += bool(arcs) and found > min(costs) - 0.5
    assert some > 0


def words_after(graph, state_list, first, ranges, place_word):
    """The sorted words of each state of a compiled graph, "" = the end, from `next_words` or without duplicates."""
    names = [*graph.words, ""]
    words = []
    for number in state_list.tolist():
        bounds = ranges[first[number] : first[number + 1]].tolist()
        assert all(high < low for (_, high), (low, _) in itertools.pairwise(bounds))
        words.append(sorted(names[word] for low, high in bounds for word in place_word[low:high]))
    return words


@pytest.mark.parametrize("seed", range(60))
def test_next_words_are_those_of_the_graph(seed):
    rng = np.random.default_rng(seed)
    graph = graphs.random_graph(rng, reference)
    compiled = graphs.compiled(graph)
    *lists, place_word, order = next_words(compiled.arrays, len(compiled.words), len(compiled.words))
    assert sorted(order) == list(range(compiled.num_states))
    assert len(set(place_word.tolist())) == len(place_word)
    expected = [sorted({word for word, _ in next_arcs(graph, state)}) for state in range(compiled.num_states)]
    assert words_after(compiled, *lists, place_word) == expected
    state_list, first, ranges = without_duplicates(*lists)
    assert words_after(compiled, state_list, first, ranges, place_word) == expected
    assert len({*map(tuple, expected)} | {()}) == len(first) - 1


@pytest.mark.parametrize("seed", range(20))
def test_words_of_many_lists_that_overlap(seed):
    """A state for each of 40 sets of words, and states before several of these: words stand in many ranges."""
    rng = np.random.default_rng(seed)
    sets = [{f"w{i}" for i in np.flatnonzero(rng.random(60) < rng.choice([0.1, 0.5]))} for _ in range(40)]
    groups = [rng.choice(40, size=3, replace=False).tolist() for _ in range(30)]
    arcs = [(1 + i, 200, word, 0.0) for i, words in enumerate(sets) for word in sorted(words)]
    arcs += [(50 + i, 1 + number, f"[g{number}]", 0.0) for i, group in enumerate(groups) for number in group]
    arcs += [(0, 50 + i, f"[s{i}]", 0.0) for i in range(30)] + [(200, 201, "[e]", 0.0)]
    graph = precompile(graphs.make_acceptor(arcs, {201: 0.0}))
    *lists, place_word, _ = next_words(graph.arrays, len(graph.words), len(graph.words))
    words = words_after(graph, *lists, place_word)
    arrays = graph.arrays
    names = [graph.states[state] for state in arrays.position_state]
    after = {name: words[exit] for name, exit in zip(names, arrays.position_exit)}
    assert after["e"] == [""]
    assert words[graph.start] == sorted(set().union(*(sets[number] for group in groups for number in group)))
    for i, group in enumerate(groups):
        assert after[f"s{i}"] == sorted(set().union(*(sets[number] for number in group)))
        for number in group:
            assert after[f"g{number}"] == sorted(sets[number])


def test_words_of_a_tree_stand_side_by_side():
    """Nine words by three first letters; the last state of w0 and of w4 is one and the same."""
    arcs, state = [], 10
    for i in range(3):
        arcs.append((0, 1 + i, f"[a{i}]", 0.0))
        for j in range(3):
            state += 1
            arcs.append((1 + i, 20 if (i, j) == (1, 1) else state, f"[b{j}]", 0.0))
            arcs.append((state, 30, f"w{3 * i + j}", 0.0))
    arcs = [arc for arc in arcs if arc[2] != "w4"]
    arcs += [(20, 21, "[d]", 0.0), (11, 21, "[d]", 0.0), (21, 30, "w4", 0.0), (30, 31, "[e]", 0.0)]
    graph = precompile(graphs.make_acceptor(arcs, {31: 0.0}))
    *lists, place_word, _ = next_words(graph.arrays, len(graph.words), len(graph.words))
    state_list, first, _ = lists
    words = words_after(graph, *lists, place_word)

    def state_after_states(*names):
        state = graph.start
        for name in names:
            (state,) = (
                graph.arrays.position_exit[p]
                for p in graph.arrays.emitting_target[
                    graph.arrays.first_emitting[state] : graph.arrays.first_emitting[state + 1]
                ]
                if graph.states[graph.arrays.position_state[p]] == name
            )
        return state

    for names, expected, num_ranges in (
        (("a0",), ["w0", "w1", "w2", "w4"], 1),
        (("a1",), ["w3", "w4", "w5"], 2),
        (("a2",), ["w6", "w7", "w8"], 1),
        (("a1", "b1", "d"), ["w4"], 1),
    ):
        state = state_after_states(*names)
        assert words[state] == expected
        assert first[state_list[state] + 1] - first[state_list[state]] == num_ranges


@pytest.mark.parametrize("seed", range(60))
def test_unpruned_results_do_not_depend_on_looking_ahead(seed):
    case = random_case(seed, integers=seed % 3 == 0)
    decoder = case.decoder.with_options(lookahead_sums=seed % 2 == 1)
    with_it, without = (decoder.with_options(lm_lookahead=on).decode(case.scores) for on in (True, False))
    assert (with_it.cost, with_it.reason, with_it.text) == (without.cost, without.reason, without.text)
    np.testing.assert_array_equal(with_it.path.label, without.path.label)
    lattice, other = (
        decoder.with_options(lm_lookahead=on, lattice_beam=2.0).decode(case.scores).lattice for on in (True, False)
    )
    assert (lattice is None) == (other is None)
    if lattice is not None:
        np.testing.assert_array_equal(lattice.cost, other.cost)


def test_a_word_that_is_dear_after_its_history_falls_out_of_the_beam_at_once():
    """x and y sound alike for three states; y costs nothing after any other word, so that the graph charges nothing."""
    orders = [
        {("<s>",): (-99, 0), ("</s>",): (-1, 0), ("x",): (-1, 0), ("y",): (-1, 0)},
        {("<s>", "x"): (-0.1, 0), ("<s>", "y"): (-6, 0), ("x", "y"): (-0.01, 0)},
    ]
    lm = LanguageModel.from_arpa(graphs.make_arpa(["<s>", "</s>", "x", "y"], orders))
    arcs = [(0, 1, "[a]", 0.0)]
    for word, first in (("x", 10), ("y", 20)):
        arcs += [(1, first, f"[{word}1]", 0.0), (first, first + 1, f"[{word}2]", 0.0), (first + 1, 2, word, 0.0)]
    arcs += [(2, 3, "[e]", 0.0)]
    graph = precompile(graphs.make_acceptor(arcs, {3: 0.0}), None, {"x": 0.1, "y": 0.01})
    decoder = Decoder(graph, lm, SearchOptions(**{**UNPRUNED, "beam": 5.0}))
    scores = np.zeros((len(graph.states), 5), np.float32, order="F")
    tokens = {on: decoder.with_options(lm_lookahead=on).decode(scores) for on in (True, False)}
    assert tokens[True].cost == tokens[False].cost
    assert tokens[True].tokens_per_frame < tokens[False].tokens_per_frame


@pytest.mark.parametrize("length", [3, 250])
def test_a_long_circle_of_states_is_none_of_negative_cost(length):
    arcs = [(0, 1, "[s]", 0.0), *((i, i + 1, f"[r{i}]", 0.1) for i in range(1, length))]
    arcs += [(length, 1, "[back]", 0.1), (length, length + 1, "W", 0.0)]
    words = {("<s>",): (-99, 0), ("</s>",): (-1, 0), ("W",): (-1, 0)}
    model = LanguageModel.from_arpa(graphs.make_arpa(["<s>", "</s>", "W"], [words]))
    decoder = Decoder(precompile(graphs.make_acceptor(arcs, {length + 1: 0.0})), model)
    assert decoder.decode(np.zeros((length + 1, length), np.float32)).text == ["W"]


def test_circle_of_negative_cost_is_refused():
    arcs = [(0, 1, "[a]", 0.0), (1, 0, "[b]", -1.0), (1, 2, "x", 0.0), (2, 3, "[c]", 0.0)]
    lm = LanguageModel.from_arpa(
        graphs.make_arpa(["<s>", "</s>", "x"], [{("<s>",): (-99, 0), ("</s>",): (-1, 0), ("x",): (-1, 0)}])
    )
    graph = precompile(graphs.make_acceptor(arcs, {3: 0.0}))
    with pytest.raises(GraphError, match="graph: a cycle of arcs has a negative cost"):
        Decoder(graph, lm)
    Decoder(graph, lm, SearchOptions(lm_lookahead=False))
    look_ahead(
        precompile(graphs.make_acceptor([*arcs[:1], (1, 0, "[b]", 1.0), *arcs[2:]], {3: 0.0})), lm, np.array([2])
    )


@pytest.mark.parametrize("is_sum", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_a_stretch_by_its_blocks(seed, is_sum):
    rng = np.random.default_rng(seed)
    cost = rng.random(int(rng.integers(1, 6000))).astype(np.float32)
    level = minima_levels(len(cost))
    table = with_minima(cost, level, is_sum)
    for _ in range(200):
        begin, end = sorted(rng.integers(0, len(cost) + 1, size=2).tolist())
        within = cost[begin:end].astype(float)
        expected = -np.logaddexp.reduce(-within) if is_sum else min(within, default=math.inf)
        assert least_between(table, level, begin, end, is_sum) == pytest.approx(expected, abs=2e-5 if is_sum else 0)


@pytest.mark.parametrize("seed", range(40))
def test_least_cost_over_wide_and_narrow_ranges(seed):
    """Ranges of 1 to 60 places in any order, with few or many n-grams of two histories in and between them."""
    rng = np.random.default_rng(seed)
    bounds = np.cumsum(rng.choice([1, 2, 60], size=12)).reshape(-1, 2).astype(np.int32)
    ranges = bounds.copy().view(RANGE)[:, 0]
    listed = [np.flatnonzero(rng.random(bounds[-1, 1] + 5) < rng.choice([0.01, 0.9])) for _ in range(2)]
    listed = [np.union1d(places, rng.choice(bounds[:, 1], size=2) - 1) for places in listed]  # last ones of ranges
    costs = [rng.uniform(1, 9, size=len(places)).astype(np.float32) for places in listed]
    level = minima_levels(sum(map(len, costs)))
    histories = np.zeros(4, HISTORY)  # the empty one, two, and the end
    histories["first"][2:] = np.cumsum([len(places) for places in listed])
    histories["backoff_cost"][1:3] = 0.5, 2.0
    histories["backoff_state"][2] = 1
    found, backed_off = least_cost(
        *(histories, np.concatenate(listed).astype(np.int32), with_minima(np.concatenate(costs), level), level),
        *(np.int64(0), np.int64(2), ranges, np.int64(0), np.int64(len(ranges)), False),
    )
    inside = [np.any([(low <= places) & (places < high) for low, high in bounds], axis=0) for places in listed]
    of_history = [cost[mask].min(initial=np.inf) for cost, mask in zip(costs, inside)]
    assert backed_off == 2.5
    assert found == pytest.approx(min(of_history[0] + 2.0, of_history[1]))


@pytest.mark.parametrize("seed", range(20))
def test_no_look_ahead_where_a_word_can_come_next_that_keeps_the_history(seed):
    rng = np.random.default_rng(seed)
    graph = graphs.random_graph(rng, reference, marks=True)
    words = sorted(word for word in graph.lookahead if word not in ("<s>", "</s>"))
    vocabulary, orders = graphs.random_orders(rng, words, 2)
    decoder = Decoder(
        graphs.compiled(graph),
        LanguageModel.from_arpa(graphs.make_arpa(vocabulary, orders)),
        SearchOptions(**UNPRUNED),
    )
    assert "<s>" in {word for word, _ in next_arcs(graph, graph.start)}
    assert ahead_at(decoder, decoder.graph.start, decoder.lm.start_state) == 0


@pytest.mark.parametrize("hotwords", [(), ("x", "y z")])
def test_a_search_may_use_the_cache_of_another_unless_there_are_hotwords(hotwords):
    """Numbers of hotword histories differ between searches, so that their costs are not kept."""
    for seed in range(12):
        case = random_case(seed)
        known = [phrase for phrase in hotwords if set(phrase.split()) <= set(case.decoder.graph.words)]
        decoder = case.decoder.with_hotwords(known, 1.5).with_options(beam=3.0, widenings=1)
        other = random_case(seed + 100).scores[:, :3]
        first, unlike = decoder.decode(case.scores), np.resize(other, case.scores.shape).astype(np.float32, order="F")
        decoder.decode(unlike)
        again = decoder.decode(case.scores)
        assert (again.cost, again.text, again.tokens_per_frame) == (first.cost, first.text, first.tokens_per_frame)
        assert len(decoder._caches) == (0 if known else 1)
        assert not decoder.with_options(lm_scale=3.0)._caches  # costs of another scale
        fresh = case.decoder.with_hotwords(known, 1.5).with_options(beam=3.0, widenings=1)
        assert fresh.decode(case.scores).cost == first.cost
