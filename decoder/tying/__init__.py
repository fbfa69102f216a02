"""State tying: from state alignments and features to tied triphone states, as decision trees and an HTK donor."""

from decoder.tying.runs import StateRun, TransitionCounts, places_of, state_runs
from decoder.tying.statistics import Statistics
from decoder.tying.system import TiedSystem, tie_states
from decoder.tying.trees import TreeOptions, grow_tree

__all__ = [
    "StateRun",
    "Statistics",
    "TiedSystem",
    "TransitionCounts",
    "TreeOptions",
    "grow_tree",
    "places_of",
    "state_runs",
    "tie_states",
]
