"""The summary of a cross-validation."""

import math
from pathlib import Path

from acoustic.actions.cross_validate import best_lines


def test_the_smallest_value_wins_and_of_equal_ones_the_first():
    results = [
        (Path("net.1"), {"CE": math.nan, "Err": 0.5}),
        (Path("net.2"), {"CE": 2.0, "Err": 0.25}),
        (Path("net.3"), {"CE": 1.5, "Err": 0.25}),
        (Path("net.4"), {"CE": 1.5}),
    ]
    assert best_lines(results) == [
        "Best models:",
        "------------",
        "Based on Err[0]: Best model = net.3 with min err 1.5 (CE)",
        "Based on Err[1]: Best model = net.2 with min err 0.25 (Err)",
    ]


def test_a_value_that_is_not_a_number_wins_only_alone():
    assert best_lines([(Path("a"), {"CE": math.nan})])[-1] == "Based on Err[0]: Best model = a with min err nan (CE)"
    found = best_lines([(Path("a"), {"CE": math.nan}), (Path("b"), {"CE": math.inf})])[-1]
    assert found == "Based on Err[0]: Best model = b with min err inf (CE)"
