"""Randomisation: chunks of the corpus are shuffled, then frames within a rolling window of chunks.

The order of a sweep depends only on the seed and the number of the sweep, so that training can start at any position;
only the chunks of the window must be in memory.

A sweep visits the chunks in shuffled order, in groups.  The frames of each group are shuffled and divided into halves;
block j of the sweep is the second half of group j-1 and the first half of group j, shuffled together.  A frame can thus
move anywhere within a window of two groups, which advances by one group.
Source: CNTK book 3.4.2 (`readMethod`, `randomize`).  The rolling window in halves is new: CNTK's window cannot be
entered in the middle of a sweep.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from readers.config.options import option
from readers.config.values import parse_int
from readers.errors import ConfigError
from readers.minibatches.base import ReaderBlock

_CHUNKS, _GROUP, _BLOCK = range(3)  # purpose of a random generator, part of its seed


def window_of(text: str) -> int | None:
    """Return the frames that are shuffled together by a value of `randomize`: None for auto and none, 0 for a fault."""
    if text.lower() in ("auto", "none"):
        return None
    try:
        return max(parse_int(text, "", ""), 0)
    except ConfigError:
        return 0


@dataclass(frozen=True, kw_only=True)
class MinibatchOptions(ReaderBlock):
    """How a reader ends an epoch."""

    minibatch_mode: Literal["partial", "full"] = option(
        "partial", "whether training uses the last, shorter minibatch of an epoch, or full ones only"
    )

    @property
    def partial(self) -> bool:
        """Whether training uses the last, short minibatch of an epoch."""
        return self.minibatch_mode == "partial"


@dataclass(frozen=True, kw_only=True)
class VisitOptions(MinibatchOptions):
    """The order in which a reader visits frames or records."""

    randomize: str = option(
        "auto",
        "range over which frames are shuffled: auto for as many as memory allows, none for the order of the files, or "
        "a number of frames",
        check=lambda text: window_of(text) != 0,
        expected="auto, none or a number of frames",
    )
    max_frames: int = option(
        2_000_000, "frames or records to keep in memory", unit="frames", least=1, cntk="maxFramesInMemory"
    )

    @property
    def shuffle(self) -> bool:
        """Whether the order is random."""
        return self.randomize.lower() != "none"

    @property
    def window(self) -> int | None:
        """Frames that are shuffled together; None for as many as memory permits."""
        return window_of(self.randomize)


@dataclass(frozen=True)
class ChunkPlan:
    """The division of the N frames of a corpus, in their original order, into C chunks.

    Attributes
    ----------
    first_frame : (C + 1,) int64
        First frame of each chunk of consecutive frames, and N.
    chunks_per_group : int
        Number of chunks that are shuffled together.
    seed : int
    shuffle : bool
        If False, frames are visited in their original order.
    """

    first_frame: np.ndarray
    chunks_per_group: int
    seed: int
    shuffle: bool

    @property
    def num_chunks(self) -> int:
        """C, the number of chunks."""
        return len(self.first_frame) - 1

    @property
    def num_frames(self) -> int:
        """N, the number of frames."""
        return int(self.first_frame[-1])


class Sweep:
    """One pass over all frames.  Blocks are numbered 0..num_blocks-1; some may be empty.

    bounds: (num_blocks + 1,) int64, position in the sweep where each block begins, and N.
    """

    def __init__(self, plan: ChunkPlan, number: int):
        self.plan = plan
        self.number = number
        chunks = np.arange(plan.num_chunks)
        if plan.shuffle:
            self._generator(_CHUNKS, 0).shuffle(chunks)
        step = plan.chunks_per_group
        # Sorted, so that the order within a group does not depend on its division into chunks.
        self._groups = [np.sort(chunks[i : i + step]) for i in range(0, len(chunks), step)]
        sizes = np.diff(plan.first_frame)
        totals = np.array([int(sizes[group].sum()) for group in self._groups])
        # A single group has no neighbour to be mixed with.
        self._halved = plan.shuffle and len(totals) > 1
        self._heads = totals // 2 if self._halved else totals
        tails = totals - self._heads
        lengths = np.append(self._heads, 0) + np.insert(tails, 0, 0)
        self.bounds = np.insert(np.cumsum(lengths), 0, 0)

    @property
    def num_blocks(self) -> int:
        return len(self._groups) + 1

    def find(self, position: int) -> int:
        """Return the block that contains a position 0 <= position < N."""
        return int(np.searchsorted(self.bounds, position, side="right")) - 1

    def chunks(self, block: int) -> list[int]:
        """Return the chunks that contain the frames of a block."""
        groups = self._groups[block - 1 if self._halved and block > 0 else block : block + 1]
        return [int(chunk) for group in groups for chunk in group]

    def frames(self, block: int) -> np.ndarray:
        """Return the frames of a block in the order of visits, int64 numbers in the original order of the corpus."""
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


def pack_chunks(lengths: Sequence[int] | npt.NDArray[np.integer], chunk_frames: int) -> np.ndarray:
    """Divide consecutive utterances into chunks of at most `chunk_frames` frames; a longer utterance is a chunk of its
    own.

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
    """Divide a corpus into chunks such that shuffling mixes as many frames as requested and as memory permits.

    lengths: (U,) frames of each utterance.
    chunk_frames: size of a chunk, unless the window requires smaller ones.
    window: frames to be mixed with each other, None for as many as possible.
    max_frames: frames in memory, which hold three groups (the two of the window and the next).
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
