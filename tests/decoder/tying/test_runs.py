"""From state labels to triphones: contexts, where phones begin, faults; transition probabilities from counts."""

import itertools

import numpy as np
import pytest

from decoder.tying import TransitionCounts, places_of, state_runs
from readers.errors import FormatError, GraphError
from readers.htk.mlf import Label
from readers.htk.trees import DecisionTree, DecisionTrees, Question

STATES = {"a": ("a2", "a3"), "b": ("b2", "b3"), "sil": ("sil2", "sil3", "sil4"), "sp": ("sp2",)}
FREE = ("sil", "sp")


def labels(text: str) -> list[Label]:
    """`a2 a2 a3`: a frame each; runs of a name are one label."""
    names = text.split()
    bounds = [0, *(i for i in range(1, len(names)) if names[i] != names[i - 1]), len(names)]
    return [Label(s * 100_000, e * 100_000, names[s]) for s, e in itertools.pairwise(bounds)]


def models(text: str, **options) -> list[tuple[str, int]]:
    runs = state_runs(labels(text), places_of(STATES), FREE, **options)
    return [(run.model, run.state) for run in runs]


def test_runs_carry_neighbours_and_silence_beyond_the_ends():
    assert models("a2 a3 b2 b3 sil2 sil3 a2") == [
        ("sil-a+b", 2), ("sil-a+b", 3), ("a-b+sil", 2), ("a-b+sil", 3), ("sil", 2), ("sil", 3), ("sil-a+sil", 2),
    ]  # fmt: skip


def test_a_phone_that_steps_back_begins_again_and_silence_does_not():
    runs = state_runs(labels("sil2 sil4 sil2 a2 a3 a2 a3"), places_of(STATES), FREE)
    assert [run.visit for run in runs] == [0, 0, 0, 1, 1, 2, 2]
    assert [run.model for run in runs][3:] == ["sil-a+a", "sil-a+a", "a-a+sil", "a-a+sil"]
    assert [(run.start, run.end) for run in runs] == [(i, i + 1) for i in range(7)]


def test_a_phone_of_one_state_begins_again_with_every_label():
    twice = [Label(0, 100_000, "d2"), Label(100_000, 300_000, "d2")]
    runs = state_runs(twice, places_of({"d": ("d2",)}), FREE)
    assert [(run.model, run.visit) for run in runs] == [("sil-d+d", 0), ("d-d+sil", 1)]


def test_short_pause_is_no_neighbour():
    assert models("a2 sp2 b2", pause="sp") == [("sil-a+b", 2), ("sp", 2), ("a-b+sil", 2)]
    assert models("a2 sp2 b2") == [("sil-a+sp", 2), ("sp", 2), ("sp-b+sil", 2)]


def test_labels_of_no_frames_are_no_visits_and_times_are_rounded():
    found = state_runs(
        [Label(0, 99_999, "a2"), Label(99_999, 100_001, "a3"), Label(100_001, 300_000, "b2")], places_of(STATES), FREE
    )
    assert [(run.model, run.start, run.end) for run in found] == [("sil-a+b", 0, 1), ("a-b+sil", 1, 3)]


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (Label(0, 100_000, "x2"), r"u1, label 1: state 'x2'; expected a state of the state map"),
        (Label(None, None, "a2"), "u1: label 'a2' has no time"),
        (Label(0, 1 << 45, "a2"), "u1: the labels cover 351843721 frames; expected at most"),
    ],
)
def test_bad_labels_are_named(label, message):
    with pytest.raises(FormatError, match=message):
        state_runs([label], places_of(STATES), FREE, where="u1")


def test_labels_that_overlap_are_refused_as_in_training():
    with pytest.raises(FormatError, match="u1: label 'a3' begins at frame 1; expected frame 2, where the label before"):
        state_runs([Label(0, 200_000, "a2"), Label(100_000, 300_000, "a3")], places_of(STATES), FREE, where="u1")


def test_places_of_tied_states_come_from_the_trees():
    trees = DecisionTrees(
        {"Q": Question("Q", ("a-*",))},
        {("b", 2): DecisionTree((("Q", "b_1", "b_2"),)), ("b", 3): DecisionTree((), "b_3")},
    )
    assert places_of({"sil": ("s",), "b": ("b_3x", "b_3")}, trees) == {
        "s": ("sil", 2),
        "b_3x": ("b", 2),
        "b_1": ("b", 2),
        "b_2": ("b", 2),
        "b_3": ("b", 3),
    }


def test_a_state_in_two_places_is_refused():
    with pytest.raises(GraphError, match=r"'x' is state 2 of 'a' and state 3 of 'b'; expected every state in one"):
        places_of({"a": ("x",), "b": ("y", "x")})


# Transitions


def counted(*texts: str) -> TransitionCounts:
    counts = TransitionCounts()
    for text in texts:
        counts.add(state_runs(labels(text), places_of(STATES), FREE), {k: len(v) for k, v in STATES.items()})
    return counts


def test_transitions_are_relative_frequencies_with_one_more_of_each():
    matrix = counted("a2 a2 a2 a3 b2 b3", "a2 a3 a3 a2 a3").transitions("a", 2, None, True).matrix
    # State 2: entered three times, five frames: two stays and one more, three steps and one more.
    np.testing.assert_allclose(matrix, [[0, 1, 0, 0], [0, 3 / 7, 4 / 7, 0], [0, 0, 2 / 6, 4 / 6], [0, 0, 0, 0]])


def test_silence_keeps_its_ways_and_the_others_lose_theirs():
    counts = counted("sil2 sil4 sil2 sil3 sil4 a2 b2")
    silence = counts.transitions("sil", 3, "T", False)
    assert silence.macro == "T"
    np.testing.assert_allclose(silence.matrix[1], np.array([0, 1, 2, 1, 0]) / 4)
    np.testing.assert_allclose(silence.matrix[3], np.array([0, 1, 0, 1, 2]) / 4)
    np.testing.assert_allclose(silence.matrix[0], [0, 1, 0, 0, 0])
    skipped = counts.transitions("a", 2, None, True).matrix  # the way from 2 past 3 is not there
    assert skipped[1, 3] == 0
    assert skipped[1, 1] == pytest.approx(0.5)


def test_a_power_flattens_and_rows_still_sum_to_one():
    counts = counted("a2 a2 a2 a2 a2 a2 a2 a3")
    plain, flat = (counts.transitions("a", 2, None, True, power).matrix for power in (1.0, 0.0))
    assert plain[1, 1] == pytest.approx(7 / 9)
    assert flat[1, 1] == pytest.approx(0.5)
    np.testing.assert_allclose(flat[:-1].sum(axis=1), 1)


def test_a_phone_never_seen_stays_and_goes_on_alike():
    matrix = TransitionCounts().transitions("a", 2, None, True).matrix
    np.testing.assert_allclose(matrix, [[0, 1, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5], [0, 0, 0, 0]])
