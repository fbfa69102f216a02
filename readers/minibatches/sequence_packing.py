"""Packing of sequences into minibatches: assignment to slots and steps.

Chunks for latency-controlled bidirectional networks have look-ahead frames: each piece of a sequence is followed by
frames as context, which the next piece contains again (Y. Zhang et al., "Highway long short-term memory RNNs for
distant speech recognition", ICASSP 2016).

Packing uses only the lengths; callers fill the columns with data.  The order of the sequences is kept: a minibatch
never contains sequences before those of the previous minibatch.
Source: CNTK book 2.6.2, 3.4.2 (nbruttsineachrecurrentiter, truncated).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from readers.minibatches.sequence_layout import SequenceLayout

__all__ = ["PackedSequences", "SequencePiece", "pack_truncated", "pack_whole"]


class SequencePiece(NamedTuple):
    """Consecutive frames of a sequence in consecutive steps of a slot.

    Attributes
    ----------
    sequence : int
        Index of the sequence.
    first : int
        Its first frame here.
    num_frames : int
    slot, step : int
        Slot of the minibatch, and step of the first frame.
    """

    sequence: int
    first: int
    num_frames: int
    slot: int
    step: int


class PackedSequences(NamedTuple):
    """A minibatch of sequences; columns without a piece are gaps.

    Attributes
    ----------
    layout : SequenceLayout
    pieces : list of SequencePiece
    """

    layout: SequenceLayout
    pieces: list[SequencePiece]


def pack_whole(lengths: Sequence[int], parallel: int) -> Iterator[PackedSequences]:
    """Pack whole sequences, up to `parallel` of them in parallel.

    The slots are as long as the longest of the first `parallel` sequences.  Further sequences fill the free ends of
    slots, each the fullest slot in which it fits, until one does not fit.
    """
    sequence = 0
    while sequence < len(lengths):
        first = [int(length) for length in lengths[sequence : sequence + parallel]]
        pieces = [SequencePiece(sequence + slot, 0, length, slot, 0) for slot, length in enumerate(first)]
        filled = np.array(first)
        num_steps = max(first)
        sequence += len(first)
        while sequence < len(lengths):
            length = int(lengths[sequence])
            fits = np.flatnonzero(filled + length <= num_steps)
            if not fits.size:
                break
            slot = int(fits[filled[fits].argmax()])
            pieces.append(SequencePiece(sequence, 0, length, slot, int(filled[slot])))
            filled[slot] += length
            sequence += 1
        yield PackedSequences(_layout(lengths, pieces, len(first), num_steps), pieces)


def pack_truncated(lengths: Sequence[int], parallel: int, num_steps: int, ahead: int = 0) -> Iterator[PackedSequences]:
    """Pack sequences into minibatches of `num_steps` steps.

    A slot continues its sequence until its end, then takes the next one.  Gaps, and finally fewer steps, occur only
    after the last sequence has begun.  ahead: maximum number of frames of each continued sequence that follow as
    context; their pieces come last.
    """
    num_slots = min(parallel, len(lengths))
    running: dict[int, tuple[int, int]] = {}  # slot -> its sequence and the number of packed frames
    following = 0
    while running or following < len(lengths):
        carried = running
        running = {}
        pieces: list[SequencePiece] = []
        filled = [0] * num_slots
        while carried or (following < len(lengths) and min(filled) < num_steps):
            if carried:
                slot = min(carried)
                sequence, done = carried.pop(slot)
            else:
                slot = filled.index(min(filled))
                sequence = following
                done = 0
                following += 1
            count = min(int(lengths[sequence]) - done, num_steps - filled[slot])
            pieces.append(SequencePiece(sequence, done, count, slot, filled[slot]))
            filled[slot] += count
            if done + count < lengths[sequence]:
                running[slot] = (sequence, done + count)
        # Only full slots continue, so the context begins at the same step in all slots.
        context = [
            SequencePiece(sequence, done, min(ahead, int(lengths[sequence]) - done), slot, num_steps)
            for slot, (sequence, done) in running.items()
            if ahead
        ]
        num_context = max((piece.num_frames for piece in context), default=0)
        pieces += context
        yield PackedSequences(_layout(lengths, pieces, num_slots, max(filled) + num_context, num_context), pieces)


def _layout(
    lengths: Sequence[int], pieces: list[SequencePiece], num_slots: int, num_steps: int, num_context: int = 0
) -> SequenceLayout:
    starts, ends, gaps = (np.full((num_steps, num_slots), value) for value in (False, False, True))
    for sequence, first, count, slot, step in pieces:
        gaps[step : step + count, slot] = False
        starts[step, slot] = first == 0
        ends[step + count - 1, slot] = first + count == lengths[sequence]
    return SequenceLayout(num_slots, num_steps, starts, ends, gaps, num_context)
