"""Layered drawing: nothing overlaps, edges go upwards, few of them cross."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acoustic.export.layered_drawing import place_nodes


@st.composite
def graphs(draw) -> dict[str, list[str]]:
    count = draw(st.integers(1, 25))
    return {
        f"n{k}": [f"n{j}" for j in draw(st.lists(st.integers(0, k - 1), max_size=3))] if k else [] for k in range(count)
    }


@settings(max_examples=80, deadline=None)
@given(graphs(), st.data())
def test_operands_stand_below_and_nothing_overlaps(operands, data):
    widths = {name: data.draw(st.floats(0.5, 4)) for name in operands}
    layout = place_nodes(operands, widths, 0.5)
    rows: dict[int, list[tuple[float, float]]] = {}
    for name, (x, layer) in layout.places.items():
        rows.setdefault(layer, []).append((x, widths[name]))
        assert all(layout.places[operand][1] < layer for operand in operands[name])
        assert x - widths[name] / 2 >= -1e-9
    for places in layout.bends.values():
        for x, layer in places:
            rows.setdefault(layer, []).append((x, 0.0))
    assert sorted(rows) == list(range(layout.num_layers))
    for row in rows.values():
        row.sort()
        for (x0, w0), (x1, w1) in pairwise(row):
            assert x1 - x0 >= (w0 + w1) / 2 + 0.5 - 1e-6
    for (operand, user), places in layout.bends.items():
        low, high = layout.places[operand][1], layout.places[user][1]
        assert [layer for _, layer in places] == list(range(low + 1, high))


def test_a_chain_is_straight_and_crossed_edges_are_untied():
    chain = {"a": [], "b": ["a"], "c": ["b"]}
    places = place_nodes(chain, dict.fromkeys(chain, 1.0), 0.5).places
    assert len({x for x, _ in places.values()}) == 1
    pairs = {"a": [], "b": [], "c": [], "u": ["c"], "v": ["b"], "w": ["a"]}
    places = place_nodes(pairs, dict.fromkeys(pairs, 1.0), 0.5).places
    order = sorted("abc", key=lambda name: places[name][0])
    assert sorted("uvw", key=lambda name: places[name][0]) == [{"a": "w", "b": "v", "c": "u"}[name] for name in order]


def test_a_leaf_stands_right_below_its_user():
    operands = {"x": [], "h": ["x"], "i": ["h"], "w": [], "o": ["w", "i"]}
    places = place_nodes(operands, dict.fromkeys(operands, 1.0), 0.5).places
    assert places["w"][1] == places["o"][1] - 1
    assert places["x"][1] == 0


@pytest.mark.parametrize("operands", [{}, {"a": []}, {"a": [], "b": ["a", "a"]}])
def test_small_graphs(operands):
    layout = place_nodes(operands, dict.fromkeys(operands, 1.0), 0.5)
    assert set(layout.places) == set(operands)
