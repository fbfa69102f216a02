"""Minibatches of sequence pairs: the source and target sequences of an encoder and a decoder.

Source: CNTK book 2.7.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from readers.errors import ShapeError
from readers.minibatches.sequence_layout import SequenceLayout

__all__ = ["PairLayout", "columns_of"]


@dataclass(frozen=True, eq=False)
class PairLayout:
    """Layouts of paired sequences: the k-th source sequence of a slot belongs to the k-th target sequence of that slot.

    Attributes
    ----------
    source, target : SequenceLayout
        Layouts of whole sequences.

    Raises
    ------
    ShapeError
        For partial sequences, and slots with different numbers of source and target sequences.

    References
    ----------
    CNTK book 2.7.
    """

    source: SequenceLayout
    target: SequenceLayout

    def __post_init__(self) -> None:
        for side, layout in (("source", self.source), ("target", self.target)):
            if (layout.starts.sum(axis=0) != layout.ends.sum(axis=0)).any() or not self._begin(layout).all():
                raise ShapeError(f"{side} sequences continue in another minibatch; expected whole sequences")
        counts = [layout.starts.sum(axis=0).tolist() for layout in (self.source, self.target)]
        if counts[0] != counts[1]:
            raise ShapeError(
                f"slots hold {counts[0]} source and {counts[1]} target sequences; expected equal numbers in each slot"
            )

    @staticmethod
    def _begin(layout: SequenceLayout) -> npt.NDArray[np.bool_]:
        """(S,) bool: whether the first step of a slot does not continue a sequence."""
        begins: npt.NDArray[np.bool_] = layout.starts[0] | layout.gaps[0]
        return begins

    @property
    def num_frames(self) -> int:
        """Number of frames of the target."""
        return self.target.num_frames

    @property
    def num_pairs(self) -> int:
        """Number of pairs of sequences."""
        return int(self.target.starts.sum())

    @cached_property
    def source_ends(self) -> np.ndarray:
        """(K,) columns of the last frames of the sources, ordered by slot."""
        return columns_of(self.source.ends)

    @cached_property
    def source_starts(self) -> np.ndarray:
        """(K,) columns of the first frames of the sources, in the same order."""
        return columns_of(self.source.starts)

    @cached_property
    def target_starts(self) -> np.ndarray:
        """(K,) columns of the first frames of the targets, in the same order."""
        return columns_of(self.target.starts)

    @cached_property
    def target_sequence(self) -> np.ndarray:
        """(N,) number of the target sequence of each column, in that order; -1 for columns without a frame."""
        before = np.insert(np.cumsum(self.target.starts.sum(axis=0)), 0, 0)[:-1]
        number = np.cumsum(self.target.starts, axis=0) - 1 + before
        return np.where(self.target.gaps, -1, number).reshape(-1)


def columns_of(marks: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return (K,) the columns of the marks (T, S), ordered by slot."""
    slot, step = np.nonzero(marks.T)
    columns: npt.NDArray[np.intp] = step * marks.shape[1] + slot
    return columns
