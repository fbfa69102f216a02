"""How the columns of a minibatch hold sequences: several side by side, interleaved, with gaps where one is shorter.

Source: CNTK book 2.6.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from readers.errors import ShapeError

__all__ = ["SequenceLayout"]


@dataclass(frozen=True, eq=False)
class SequenceLayout:
    """Column t * num_sequences + s of a minibatch is step t of slot s.

    starts (num_steps, num_sequences) bool: a sequence begins here; ends: its last frame is here; gaps: no frame here.
    num_context: so many steps at the end are there to be seen alone: they count in no sum over frames, and the next
    minibatch begins with them again.  No sequence starts there.
    A slot may hold several sequences one after the other.  A slot whose first step neither starts nor is a gap
    continues what the slot held at the end of the minibatch before; one whose last step, context aside, neither ends
    nor is a gap is continued by the next minibatch.
    Raises ShapeError for marks of other shapes and for marks that contradict each other.
    """

    num_sequences: int
    num_steps: int
    starts: np.ndarray
    ends: np.ndarray
    gaps: np.ndarray
    num_context: int = 0

    def __post_init__(self):
        shape = (self.num_steps, self.num_sequences)
        for name in ("starts", "ends", "gaps"):
            marks = getattr(self, name)
            if marks.shape != shape or marks.dtype != bool or 0 in shape:
                raise ShapeError(f"{name} of sequences: {marks.dtype} {marks.shape}; expected bool {shape}, not empty")
        if not 0 <= self.num_context < self.num_steps or self.starts[self.num_kept :].any():
            raise ShapeError(
                f"sequences of {self.num_steps} steps, the last {self.num_context} as context; expected fewer, and no "
                "sequence that starts there"
            )
        self._check_order()

    @classmethod
    def of_lengths(cls, lengths: Sequence[int]) -> "SequenceLayout":
        """Whole sequences side by side, each from step 0, padded to the longest."""
        count = np.asarray(lengths, np.int64)
        if count.ndim != 1 or not count.size or count.min() < 1:
            raise ShapeError(f"lengths of sequences: {list(lengths)}; expected at least one, each of 1 frame or more")
        steps = np.arange(count.max())[:, None]
        starts = np.repeat(steps == 0, len(count), axis=1)
        return cls(len(count), len(steps), starts, steps == count - 1, steps >= count)

    @property
    def num_columns(self) -> int:
        return self.num_steps * self.num_sequences

    @property
    def num_kept(self) -> int:
        """Steps without the context."""
        return self.num_steps - self.num_context

    @property
    def num_frames(self) -> int:
        """Columns that are no gap and no context."""
        return self.num_kept * self.num_sequences - int(np.count_nonzero(self.gaps[: self.num_kept]))

    @property
    def gap_columns(self) -> np.ndarray | None:
        """(num_columns,) bool: the columns that no sum counts, without a frame or context; None when all count."""
        if not self.num_context:
            return self.gaps.reshape(-1) if self.gaps.any() else None
        return (self.gaps | (np.arange(self.num_steps) >= self.num_kept)[:, np.newaxis]).reshape(-1)

    def _check_order(self) -> None:
        """A sequence runs from its start to its end without a gap, and a gap does neither."""
        starts, ends, gaps = self.starts, self.ends, self.gaps
        # A sequence is open between two steps for both of them, or for neither.
        open_after = ~(ends | gaps)[:-1]
        open_before = ~(starts | gaps)[1:]
        faults = [((starts | ends) & gaps, "a gap that starts or ends a sequence")]
        faults.append((open_after & ~open_before, "a sequence that stops without its end"))
        faults.append((~open_after & open_before, "frames that no sequence holds"))
        for where, fault in faults:
            if where.any():
                step, slot = (int(index) for index in np.argwhere(where)[0])
                raise ShapeError(
                    f"sequences, step {step}, slot {slot}: {fault}; expected start, frames, end, then gaps"
                )
