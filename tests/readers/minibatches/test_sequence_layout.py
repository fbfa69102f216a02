"""SequenceLayout: what its marks say, worked out by hand, and marks that contradict each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers.errors import ShapeError
from readers.minibatches.sequence_layout import SequenceLayout


def marks(*rows: str) -> np.ndarray:
    """One row for each step, x for a mark."""
    return np.array([[mark == "x" for mark in row] for row in rows])


def test_whole_sequences_side_by_side():
    layout = SequenceLayout.of_lengths([3, 1, 2])
    assert (layout.num_sequences, layout.num_steps, layout.num_columns, layout.num_frames) == (3, 3, 9, 6)
    np.testing.assert_array_equal(layout.starts, marks("xxx", "...", "..."))
    np.testing.assert_array_equal(layout.ends, marks(".x.", "..x", "x.."))
    np.testing.assert_array_equal(layout.gaps, marks("...", ".x.", ".xx"))
    # Column t * 3 + s.
    assert np.flatnonzero(layout.gap_columns).tolist() == [4, 7, 8]


def test_no_gaps_no_mask():
    layout = SequenceLayout.of_lengths([2, 2])
    assert layout.gap_columns is None
    assert layout.num_frames == layout.num_columns == 4


@pytest.mark.slow
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_lengths_can_be_read_off(lengths):
    layout = SequenceLayout.of_lengths(lengths)
    assert layout.num_frames == sum(lengths)
    assert (~layout.gaps).sum(axis=0).tolist() == lengths
    assert layout.ends.argmax(axis=0).tolist() == [length - 1 for length in lengths]
    assert layout.starts[0].all()
    assert (layout.starts.sum(), layout.ends.sum()) == (len(lengths), len(lengths))


def test_a_slot_may_continue_and_be_continued():
    layout = SequenceLayout(2, 3, marks("..", ".x", ".."), marks("xx", "..", ".."), marks("..", "x.", "x."))
    assert layout.num_frames == 4


@pytest.mark.parametrize("lengths", [[], [3, 0], [-1], [[2]]])
def test_lengths_that_are_none(lengths):
    with pytest.raises(ShapeError, match=r"lengths of sequences: .*; expected at least one, each of 1 frame or more"):
        SequenceLayout.of_lengths(lengths)


@pytest.mark.parametrize(
    ("starts", "ends", "gaps", "message"),
    [
        (["x"], ["x"], ["x"], "step 0, slot 0: a gap that starts or ends a sequence"),
        (["x", "."], [".", "."], [".", "x"], "step 0, slot 0: a sequence that stops without an end mark"),
        (["x", "x"], [".", "x"], [".", "."], "step 0, slot 0: a sequence that stops without an end mark"),
        (["xx", ".."], ["xx", ".."], ["..", "x."], "step 0, slot 1: frames outside of any sequence"),
        ([".", "."], [".", "x"], ["x", "."], "step 0, slot 0: frames outside of any sequence"),
        (["x"], ["x", "."], [".", "."], r"starts of sequences: bool \(1, 1\); expected bool \(2, 1\)"),
    ],
)
def test_marks_that_contradict_each_other(starts, ends, gaps, message):
    with pytest.raises(ShapeError, match=message):
        SequenceLayout(len(ends[0]), len(ends), marks(*starts), marks(*ends), marks(*gaps))


def test_context_counts_for_nothing():
    layout = SequenceLayout(2, 3, marks("xx", "..", ".."), marks("..", ".x", ".."), marks("..", "..", ".x"), 1)
    assert (layout.num_kept, layout.num_frames) == (2, 4)
    assert layout.gap_columns.tolist() == [False] * 4 + [True] * 2


@pytest.mark.parametrize(("num_context", "starts"), [(3, ".."), (-1, ".."), (1, "x.")])
def test_context_that_cannot_be(num_context, starts):
    message = (
        f"sequences of 3 steps, the last {num_context} as context; expected fewer, and no sequence that starts there"
    )
    with pytest.raises(ShapeError, match=message):
        SequenceLayout(2, 3, marks("..", "..", starts), marks("..", "x.", ".."), marks("..", "..", ".."), num_context)


def test_marks_are_booleans():
    zeros = np.zeros((1, 1), np.int8)
    with pytest.raises(ShapeError, match=r"starts of sequences: int8 \(1, 1\); expected bool \(1, 1\)"):
        SequenceLayout(1, 1, zeros, zeros, zeros)
