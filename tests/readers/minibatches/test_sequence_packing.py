"""Sequences packed into minibatches: examples by hand, and that every frame is there once, in its order and slot."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers.minibatches.sequence_packing import SequencePiece, pack_truncated, pack_whole

LENGTHS = st.lists(st.integers(1, 12), max_size=20)
PARALLEL = st.integers(1, 6)


def read_columns(minibatches, lengths) -> dict[int, list[int]]:
    """sequence: its frames in the order in which slots give them.

    It follows the marks as an engine does and takes from the pieces only what each column holds.
    """
    frames: dict[int, list[int]] = {}
    state: dict[int, int | None] = {}
    for layout, pieces in minibatches:
        held = np.full((layout.num_steps, layout.num_sequences, 2), -1)
        for piece in pieces:
            for k in range(piece.num_frames):
                assert held[piece.step + k, piece.slot, 0] == -1  # nothing else is there
                held[piece.step + k, piece.slot] = piece.sequence, piece.first + k
        for slot in range(layout.num_sequences):
            for step in range(layout.num_steps):
                sequence, frame = held[step, slot].tolist()
                assert layout.gaps[step, slot] == (sequence < 0)
                if sequence < 0:
                    assert state.get(slot) is None
                    continue
                assert layout.starts[step, slot] == (state.get(slot) is None)
                state[slot] = sequence if layout.starts[step, slot] else state[slot]
                assert state[slot] == sequence
                frames.setdefault(sequence, []).append(frame)
                if layout.ends[step, slot]:
                    assert len(frames[sequence]) == lengths[sequence]
                    state[slot] = None
    assert not any(held is not None for held in state.values())
    return frames


@given(LENGTHS, PARALLEL)
def test_whole_sequences_are_there_once_in_order(lengths, parallel):
    minibatches = list(pack_whole(lengths, parallel))
    assert read_columns(minibatches, lengths) == {k: list(range(length)) for k, length in enumerate(lengths)}
    assert [piece.sequence for packed in minibatches for piece in packed.pieces] == list(range(len(lengths)))
    for layout, pieces in minibatches:
        assert layout.num_sequences <= parallel
        assert not layout.gaps.all(axis=1).any()
        assert all(piece.first == 0 and piece.num_frames == lengths[piece.sequence] for piece in pieces)


@given(LENGTHS, PARALLEL, st.integers(1, 15))
def test_truncated_sequences_are_there_once_in_order(lengths, parallel, num_steps):
    minibatches = list(pack_truncated(lengths, parallel, num_steps))
    assert read_columns(minibatches, lengths) == {k: list(range(length)) for k, length in enumerate(lengths)}
    assert all(packed.layout.num_steps == num_steps for packed in minibatches[:-1])
    assert len({packed.layout.num_sequences for packed in minibatches}) <= 1
    # A gap only when all sequences have begun.
    begun = 0
    for layout, pieces in minibatches:
        begun = max(begun, *(piece.sequence + 1 for piece in pieces))
        assert begun == len(lengths) or not layout.gaps.any()


@given(LENGTHS, PARALLEL, st.integers(1, 15), st.integers(0, 8))
def test_frames_ahead_follow_each_piece_as_context(lengths, parallel, num_steps, ahead):
    """Without the context the minibatches are those without frames ahead; the context is what follows in the slot."""
    plain = list(pack_truncated(lengths, parallel, num_steps))
    for (layout, pieces), (before, kept) in zip(
        pack_truncated(lengths, parallel, num_steps, ahead), plain, strict=True
    ):
        assert pieces[: len(kept)] == kept
        assert (layout.num_kept, layout.num_frames) == (before.num_steps, before.num_frames)
        for marks in ("starts", "ends", "gaps"):
            assert (getattr(layout, marks)[: layout.num_kept] == getattr(before, marks)).all()
        going_on = {piece.slot: piece for piece in kept if piece.step + piece.num_frames == num_steps}
        expected = []
        for sequence, first, count, slot, _ in going_on.values():
            if ahead and (left := lengths[sequence] - first - count):
                expected.append(SequencePiece(sequence, first + count, min(ahead, left), slot, num_steps))
                assert layout.ends[num_steps + expected[-1].num_frames - 1, slot] == (left <= ahead)
        assert sorted(pieces[len(kept) :]) == sorted(expected)
        assert layout.num_context == max((piece.num_frames for piece in expected), default=0)
        counted = ~layout.gap_columns if layout.gap_columns is not None else np.ones(layout.num_columns, bool)
        assert counted.sum() == layout.num_frames


def test_short_sequences_fill_free_tails():
    (layout, pieces), (rest, _) = pack_whole([5, 3, 4, 1, 1, 2, 1, 1], 3)
    # 4 is fullest, so the first 1 goes behind it; the next 1 behind 3; 2 fits nowhere, and ends the minibatch.
    assert pieces[3:] == [SequencePiece(3, 0, 1, 2, 4), SequencePiece(4, 0, 1, 1, 3)]
    assert np.argwhere(layout.gaps).tolist() == [[4, 1]]
    assert np.argwhere(layout.starts).tolist() == [[0, 0], [0, 1], [0, 2], [3, 1], [4, 2]]
    assert rest.num_frames == 4


def test_a_slot_goes_on():
    first, second, third = pack_truncated([3, 9, 2, 1], 2, 4)
    assert first.pieces == [SequencePiece(0, 0, 3, 0, 0), SequencePiece(1, 0, 4, 1, 0), SequencePiece(2, 0, 1, 0, 3)]
    assert second.pieces == [SequencePiece(2, 1, 1, 0, 0), SequencePiece(1, 4, 4, 1, 0), SequencePiece(3, 0, 1, 0, 1)]
    assert third.pieces == [SequencePiece(1, 8, 1, 1, 0)]
    assert np.argwhere(first.layout.starts).tolist() == [[0, 0], [0, 1], [3, 0]]
    assert np.argwhere(first.layout.ends).tolist() == [[2, 0]]
    assert np.argwhere(second.layout.gaps).tolist() == [[2, 0], [3, 0]]
    assert (third.layout.num_steps, third.layout.gaps.tolist(), third.layout.ends.tolist()) == (
        1,
        [[True, False]],
        [[False, True]],
    )


def test_slots_share_short_sequences():
    """Sequences that all fit into one slot still stand side by side."""
    (layout, pieces) = next(pack_truncated([2] * 6, 3, 100))
    assert [piece.slot for piece in pieces] == [0, 1, 2, 0, 1, 2]
    assert (layout.num_steps, layout.num_frames, layout.num_columns) == (4, 12, 12)


@pytest.mark.parametrize(
    "pack", [lambda lengths: pack_whole(lengths, 3), lambda lengths: pack_truncated(lengths, 3, 4)]
)
def test_nothing_gives_no_minibatch(pack):
    assert list(pack([])) == []
