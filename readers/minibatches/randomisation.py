"""The order in which frames are visited: chunks shuffled, then frames shuffled within a rolling window of chunks.

The order of a sweep follows from the seed and the number of the sweep alone, so that any sweep, and any place in it,
can be started without going through what comes before; and only the chunks of the window are needed at a time.

A sweep takes the chunks in shuffled order, some neighbours at a time (a group).  The frames of each group are shuffled
and dealt out in halves; block j of the sweep is the second half of group j-1 and the first half of group j, shuffled
together.  So a frame may end up anywhere within a window of two groups, which rolls on by one group.
Source: CNTK book 3.4.2 (`readMethod`, `randomize`); the rolling window in halves is ours, CNTK's cannot be entered in
the middle.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_CHUNKS, _GROUP, _BLOCK = range(3)  # what a generator is for, part of its seed


@dataclass(frozen=True)
class Plan:
    """How the frames 0..N-1 of a corpus, in its own order, are divided.

    first_frame (C + 1,) int64: where each chunk of consecutive frames begins, and N at the end.
    chunks_per_group: how many chunks are shuffled together; shuffle: False visits the frames in their own order.
    """

    first_frame: np.ndarray
    chunks_per_group: int
    seed: int
    shuffle: bool

    @property
    def num_chunks(self) -> int:
        return len(self.first_frame) - 1

    @property
    def num_frames(self) -> int:
        return int(self.first_frame[-1])


class Sweep:
    """One pass over all frames.  Blocks are numbered 0..num_blocks-1; some may be empty.

    bounds (num_blocks + 1,) int64: position in the sweep where each block begins, and N at the end.
    """

    def __init__(self, plan: Plan, number: int):
        self.plan = plan
        self.number = number
        chunks = np.arange(plan.num_chunks)
        if plan.shuffle:
            self._generator(_CHUNKS, 0).shuffle(chunks)
        step = plan.chunks_per_group
        # Sorted, so that the order within a group does not depend on how it is cut into chunks.
        self._groups = [np.sort(chunks[i : i + step]) for i in range(0, len(chunks), step)]
        sizes = np.diff(plan.first_frame)
        totals = np.array([int(sizes[group].sum()) for group in self._groups])
        # A group on its own has no neighbour to be mixed with.
        self._halved = plan.shuffle and len(totals) > 1
        self._heads = totals // 2 if self._halved else totals
        tails = totals - self._heads
        lengths = np.append(self._heads, 0) + np.insert(tails, 0, 0)
        self.bounds = np.insert(np.cumsum(lengths), 0, 0)

    @property
    def num_blocks(self) -> int:
        return len(self._groups) + 1

    def find(self, position: int) -> int:
        """The block that holds a position 0 <= position < N."""
        return int(np.searchsorted(self.bounds, position, side="right")) - 1

    def chunks(self, block: int) -> list[int]:
        """The chunks whose frames a block draws on."""
        groups = self._groups[block - 1 if self._halved and block > 0 else block : block + 1]
        return [int(chunk) for group in groups for chunk in group]

    def frames(self, block: int) -> np.ndarray:
        """The frames of a block in the order in which they are visited, int64 numbers in the corpus' own order."""
        parts: list[np.ndarray] = []
        if self._halved and block > 0:
            parts.append(self._shuffled(block - 1)[self._heads[block - 1] :])
        if block < len(self._groups):
            parts.append(self._shuffled(block)[: self._heads[block]])
        frames = np.concatenate(parts) if parts else np.empty(0, np.int64)
        if self.plan.shuffle:
            self._generator(_BLOCK, block).shuffle(frames)
        return frames

    def _shuffled(self, group: int) -> np.ndarray:
        first = self.plan.first_frame
        frames = np.concatenate([np.arange(first[chunk], first[chunk + 1]) for chunk in self._groups[group]])
        if self.plan.shuffle:
            self._generator(_GROUP, group).shuffle(frames)
        return frames

    def _generator(self, purpose: int, index: int) -> np.random.Generator:
        return np.random.default_rng([self.plan.seed, self.number, purpose, index])


def pack_chunks(lengths: Sequence[int], chunk_frames: int) -> np.ndarray:
    """Cut consecutive utterances into chunks of at most `chunk_frames` frames; a longer utterance is a chunk by itself.

    lengths: frames of each utterance.  Returns (C + 1,) int64: the first utterance of each chunk, and their number.
    """
    firsts: list[int] = []
    filled = 0
    for utterance, length in enumerate(lengths):
        if not firsts or filled + length > chunk_frames:
            firsts.append(utterance)
            filled = 0
        filled += length
    return np.array([*firsts, len(lengths)], np.int64)


def divide(lengths: np.ndarray, chunk_frames: int, window: int | None, max_frames: int) -> tuple[np.ndarray, int, int]:
    """How to cut a corpus so that shuffling mixes as much of it as wanted and memory allows.

    lengths (U,): frames of each utterance; chunk_frames: the size of a chunk where nothing asks for smaller ones;
    window: frames to be mixed with each other, None for as many as possible; max_frames: frames in memory, three groups
    (the two of the window and the next).
    Returns (first utterance of each chunk and their number, chunks per group, chunks in memory).  A `window` that needs
    more memory than max_frames gets it.
    """
    total = int(np.sum(lengths))
    if window is None:
        group_frames = total if total <= max_frames else max(1, max_frames // 3)
    else:
        group_frames = total if total <= window else max(1, window // 2)
    chunk_frames = min(chunk_frames, group_frames)
    firsts = pack_chunks(lengths, chunk_frames)
    num_chunks = len(firsts) - 1
    per_group = num_chunks if group_frames == total else max(1, group_frames // chunk_frames)
    in_memory = num_chunks if total <= max_frames else max(3 * per_group, max_frames // chunk_frames)
    return firsts, per_group, min(in_memory, num_chunks)
