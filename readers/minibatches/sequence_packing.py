"""Sequences packed into minibatches: which stands in which slot, from which step on.

With frames ahead a piece is followed by some that come after it, as context, which the next piece has again: chunks for
latency-controlled bidirectional networks (Y. Zhang et al., "Highway long short-term memory RNNs for distant speech
recognition", ICASSP 2016).

Only lengths matter here; who has the data fills the columns in.  The order of the sequences is kept: those of a
minibatch never come before those of the one before it.
Source: CNTK book 2.6.2, 3.4.2 (nbruttsineachrecurrentiter, truncated).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from readers.minibatches.sequence_layout import SequenceLayout

__all__ = ["Packed", "Piece", "pack_truncated", "pack_whole"]


class Piece(NamedTuple):
    """Frames first..first+count-1 of a sequence, in steps step..step+count-1 of a slot."""

    sequence: int
    first: int
    count: int
    slot: int
    step: int


class Packed(NamedTuple):
    """A minibatch: its layout, and what fills it; what no piece fills is a gap."""

    layout: SequenceLayout
    pieces: list[Piece]


def pack_whole(lengths: Sequence[int], parallel: int) -> Iterator[Packed]:
    """Whole sequences, up to `parallel` side by side.

    The slots are as long as the longest of the first `parallel`; those that follow go into the free ends of slots, for
    as long as the next one fits into one of them: into the fullest where it does.
    """
    sequence = 0
    while sequence < len(lengths):
        first = [int(length) for length in lengths[sequence : sequence + parallel]]
        pieces = [Piece(sequence + slot, 0, length, slot, 0) for slot, length in enumerate(first)]
        filled, num_steps = np.array(first), max(first)
        sequence += len(first)
        while sequence < len(lengths):
            length = int(lengths[sequence])
            fits = np.flatnonzero(filled + length <= num_steps)
            if not fits.size:
                break
            slot = int(fits[filled[fits].argmax()])
            pieces.append(Piece(sequence, 0, length, slot, int(filled[slot])))
            filled[slot] += length
            sequence += 1
        yield Packed(_layout(lengths, pieces, len(first), num_steps), pieces)


def pack_truncated(lengths: Sequence[int], parallel: int, num_steps: int, ahead: int = 0) -> Iterator[Packed]:
    """Minibatches of `num_steps` steps: a slot goes on with its sequence, and when that has ended, with the next one.

    There are gaps, and at last fewer steps, only when every sequence has begun.  ahead: so many frames more of every
    sequence that goes on, or as many as it has, follow as context; their pieces come last.
    """
    num_slots = min(parallel, len(lengths))
    running: dict[int, tuple[int, int]] = {}  # slot: its sequence, and the frames of it that are done
    following = 0
    while running or following < len(lengths):
        carried, running = running, {}
        pieces: list[Piece] = []
        filled = [0] * num_slots
        while carried or (following < len(lengths) and min(filled) < num_steps):
            if carried:
                slot = min(carried)
                sequence, done = carried.pop(slot)
            else:
                slot, sequence, done = filled.index(min(filled)), following, 0
                following += 1
            count = min(int(lengths[sequence]) - done, num_steps - filled[slot])
            pieces.append(Piece(sequence, done, count, slot, filled[slot]))
            filled[slot] += count
            if done + count < lengths[sequence]:
                running[slot] = (sequence, done + count)
        # Only a full slot goes on, so the context begins at one step in all of them.
        context = [
            Piece(sequence, done, min(ahead, int(lengths[sequence]) - done), slot, num_steps)
            for slot, (sequence, done) in running.items()
            if ahead
        ]
        num_context = max((piece.count for piece in context), default=0)
        pieces += context
        yield Packed(_layout(lengths, pieces, num_slots, max(filled) + num_context, num_context), pieces)


def _layout(
    lengths: Sequence[int], pieces: list[Piece], num_slots: int, num_steps: int, num_context: int = 0
) -> SequenceLayout:
    starts, ends, gaps = (np.full((num_steps, num_slots), value) for value in (False, False, True))
    for sequence, first, count, slot, step in pieces:
        gaps[step : step + count, slot] = False
        starts[step, slot] = first == 0
        ends[step + count - 1, slot] = first + count == lengths[sequence]
    return SequenceLayout(num_slots, num_steps, starts, ends, gaps, num_context)
