"""Weight pushing: completions by an independent search, paths that keep their cost, long chains, negative cycles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoder.graph.openfst import ArcArrays
from decoder.graph.push import best_completion, push_to_start
from readers.errors import GraphError


def acceptor(arcs, final_cost):
    """An acceptor that begins in state 0; arcs are (source, target, cost)."""
    columns = list(zip(*sorted(arcs), strict=True)) or [(), (), ()]
    source, target = (np.array(column, dtype=np.int32) for column in columns[:2])
    cost = np.array(columns[2], dtype=np.float32)
    return ArcArrays(source, target, np.ones(len(arcs), np.int32), cost, np.array(final_cost, np.float32), 0)


def relax_every_arc(arrays):
    """Plain Bellman-Ford over all arcs, one at a time."""
    distance = [float(cost) for cost in arrays.final_cost]
    for _ in range(arrays.num_states):
        for source, target, cost in zip(arrays.source, arrays.target, arrays.cost, strict=True):
            distance[source] = min(distance[source], float(cost) + distance[target])
    return distance


STATES = st.integers(0, 7)
COSTS = st.integers(0, 40).map(lambda n: n / 4)


@given(
    st.lists(st.tuples(STATES, STATES, COSTS), max_size=25),
    st.lists(st.one_of(st.just(np.inf), COSTS), min_size=8, max_size=8),
)
def test_completions_are_the_cheapest(arcs, final_cost):
    arrays = acceptor(arcs, final_cost)
    np.testing.assert_array_equal(best_completion(arrays), relax_every_arc(arrays))


def test_pushing_keeps_the_cost_of_paths():
    arrays = acceptor([(0, 1, 1.0), (0, 2, 0.5), (1, 3, 2.0), (2, 3, 4.0), (1, 1, 0.25)], [np.inf, np.inf, 3.0, 1.0])
    pushed = push_to_start(arrays)
    cost = {(source, target): cost for source, target, cost in zip(pushed.source, pushed.target, pushed.cost)}
    assert cost[0, 1] + cost[1, 1] + cost[1, 3] + pushed.final_cost[3] == 1 + 0.25 + 2 + 1
    assert cost[0, 2] + pushed.final_cost[2] == 0.5 + 3
    assert best_completion(pushed).tolist() == [3.5, 0, 0, 0]


def test_a_long_chain_takes_linear_time():
    length = 30_000  # a pass over all arcs for each state takes a minute
    arrays = acceptor([(state, state + 1, 0.5) for state in range(length)], [np.inf] * length + [1.0])
    assert best_completion(arrays)[0] == 0.5 * length + 1


def test_a_cycle_of_negative_cost_is_refused():
    with pytest.raises(GraphError, match="a cycle of negative cost"):
        best_completion(acceptor([(0, 1, -1.0), (1, 0, 0.5)], [np.inf, 0.0]))
