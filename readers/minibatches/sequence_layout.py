"""Arrangement of sequences in the columns of a minibatch: parallel sequences, interleaved, with gaps after shorter
ones.

Source: CNTK book 2.6.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from readers.errors import ShapeError
from readers.minibatches.supervision import PlacedSupervision

__all__ = ["SequenceLayout"]


@dataclass(frozen=True, eq=False)
class SequenceLayout:
    """Arrangement of sequences: column t * num_sequences + s of a minibatch is step t of slot s.

    A slot may hold several sequences, one after the other.  If the first step of a slot is neither a start nor a gap,
    it continues the sequence at the end of that slot in the previous minibatch.  If the last step (before the context)
    is neither an end nor a gap, the next minibatch continues the sequence.

    Attributes
    ----------
    num_sequences : int
        Number of slots.
    num_steps : int
    starts, ends, gaps : (num_steps, num_sequences) bool
        Whether a sequence begins at this step, its last frame is there, or the step has no frame.
    num_context : int
        Number of steps at the end that are only context: no sum over frames includes them, no sequence starts there,
        and the next minibatch begins with them again.
    uncounted : (num_steps, num_sequences) bool or None
        Frames that are context within a sequence: the network computes them like others, but no sum over frames
        includes them.  None if there are none.
    supervisions : tuple of PlacedSupervision
        Lattices or graphs of the sequences, for criteria of sequences; empty if the reader has none.

    Raises
    ------
    ShapeError
        For marks of another shape, and inconsistent ones.

    References
    ----------
    CNTK book 2.6.2.
    """

    num_sequences: int
    num_steps: int
    starts: npt.NDArray[np.bool_]
    ends: npt.NDArray[np.bool_]
    gaps: npt.NDArray[np.bool_]
    num_context: int = 0
    uncounted: npt.NDArray[np.bool_] | None = None
    supervisions: tuple[PlacedSupervision, ...] = ()

    def __post_init__(self) -> None:
        shape = (self.num_steps, self.num_sequences)
        for name in ("starts", "ends", "gaps"):
            marks = getattr(self, name)
            if marks.shape != shape or marks.dtype != bool or 0 in shape:
                raise ShapeError(f"{name} of sequences: {marks.dtype} {marks.shape}; expected bool {shape}, not empty")
        context = self.uncounted
        if context is not None and (context.shape != shape or context.dtype != bool or (context & self.gaps).any()):
            raise ShapeError(
                f"context of sequences: {context.dtype} {context.shape}; expected bool {shape}, nowhere in a gap"
            )
        if not 0 <= self.num_context < self.num_steps or self.starts[self.num_kept :].any():
            raise ShapeError(
                f"sequences of {self.num_steps} steps, the last {self.num_context} as context; expected fewer, and no "
                "sequence that starts there"
            )
        self._check_order()

    @classmethod
    def of_lengths(cls, lengths: Sequence[int]) -> "SequenceLayout":
        """Return the layout of whole parallel sequences, each from step 0, padded to the longest."""
        count = np.asarray(lengths, np.int64)
        if count.ndim != 1 or not count.size or count.min() < 1:
            raise ShapeError(f"lengths of sequences: {list(lengths)}; expected at least one, each of 1 frame or more")
        steps = np.arange(count.max())[:, None]
        starts = np.repeat(steps == 0, len(count), axis=1)
        return cls(len(count), len(steps), starts, steps == count - 1, steps >= count)

    @property
    def num_columns(self) -> int:
        """Number of columns of the minibatch."""
        return self.num_steps * self.num_sequences

    @property
    def num_kept(self) -> int:
        """Number of steps without the context."""
        return self.num_steps - self.num_context

    @property
    def num_frames(self) -> int:
        """Number of columns that are neither gap nor context."""
        excluded = self.gap_columns
        return self.num_columns - (0 if excluded is None else int(np.count_nonzero(excluded)))

    @property
    def gap_columns(self) -> np.ndarray | None:
        """(num_columns,) bool: the columns that sums over frames exclude, gaps and context; None if there are none."""
        excluded = self.gaps if self.uncounted is None else self.gaps | self.uncounted
        if self.num_context:
            excluded = excluded | (np.arange(self.num_steps) >= self.num_kept)[:, np.newaxis]
        return excluded.reshape(-1) if excluded.any() else None

    def _check_order(self) -> None:
        """Check that a sequence extends from its start to its end without a gap."""
        starts = self.starts
        ends = self.ends
        gaps = self.gaps
        # Two adjacent steps must agree on whether a sequence continues between them.
        open_after = ~(ends | gaps)[:-1]
        open_before = ~(starts | gaps)[1:]
        faults = [((starts | ends) & gaps, "a gap that starts or ends a sequence")]
        faults.append((open_after & ~open_before, "a sequence that stops without an end mark"))
        faults.append((~open_after & open_before, "frames outside of any sequence"))
        for where, fault in faults:
            if where.any():
                step, slot = (int(index) for index in np.argwhere(where)[0])
                raise ShapeError(
                    f"sequences, step {step}, slot {slot}: {fault}; expected start, frames, end, then gaps"
                )
