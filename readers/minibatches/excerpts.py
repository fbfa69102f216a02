"""Excerpts of utterances at a lower frame rate: the sequences with which a network with frame subsampling is trained.

With a subsampling of n, the network gets a column for every n-th input frame, each with its window of input frames, and
an utterance of T frames has ceil(T / n) columns.  Column k is input frame n k + s, where the shift s is 0 or, in
training, drawn for each utterance and sweep; beyond the ends of an utterance its first or last frame is repeated.
An excerpt is an utterance, or a part of it (`chunkFrames`), with columns of context on both sides that are computed but
not counted (`chunkContext`).
Source: D. Povey et al., Purely sequence-trained neural networks for ASR based on lattice-free MMI, Interspeech 2016;
ShiftChainExampleTimes of Kaldi, src/nnet3/nnet-chain-example.cc, for the shifts.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from readers.config.config import Config
from readers.config.feature_record import MAX_CONTEXT, MAX_SUBSAMPLING, FeatureRecord
from readers.config.options import Options, option

MUCH_CONTEXT = 4  # columns of context for each one that counts; 20 are usual beside a chunk of 50


@dataclass(frozen=True, kw_only=True)
class ExcerptOptions(Options):
    """What part of an utterance is a sequence, and how many input frames are a column: in the block of a reader."""

    subsampling: int = option(
        1, "input frames for each column", unit="frames", least=1, most=MAX_SUBSAMPLING, cntk="frameSubsampling"
    )
    shifted: bool = option(
        True,
        "begin the columns of an utterance in training at a random frame, another one in each sweep",
        cntk="frameShift",
    )
    chunk_frames: int = option(
        0, "length of the parts into which utterances are cut; 0: whole utterances", unit="frames", least=0
    )
    context: tuple[int, ...] = option(
        (0, 0), "columns before and after a part that are computed but not counted, left:right", unit="columns",
        least=0, most=MAX_CONTEXT, cntk="chunkContext",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            "chunk_frames",
            self.chunk_frames == 0 or self.chunk_frames >= self.subsampling,
            f"is {self.chunk_frames}; expected at least {self.subsampling}, the frames of a column, or 0 for whole "
            "utterances",
        )
        context = ":".join(map(str, self.context))
        self.require("context", len(self.context) == 2, f"is {context}; expected two numbers of columns, left:right")

    def check(self, frame_mode: bool, truncated: bool) -> None:
        """Raise OptionFault for options that do not go with the order in which frames are visited."""
        chunk = self.chunk_frames
        context = ":".join(map(str, self.context))
        in_order = "expected it only with frameMode=false, which keeps the frames of an utterance in order"
        self.require("subsampling", not frame_mode or self.subsampling == 1, f"is {self.subsampling}; {in_order}")
        self.require("chunk_frames", not frame_mode or not chunk, f"is {chunk}; {in_order}")
        only_whole = "expected it only with frameMode=false and truncated=false"
        self.require("chunk_frames", not truncated or not chunk, f"is {chunk}; {only_whole}")
        self.require("context", not (frame_mode or truncated) or not any(self.context), f"is {context}; {only_whole}")

    @property
    def num_columns(self) -> int:
        """Columns of a part; 0 for whole utterances."""
        return -(-self.chunk_frames // self.subsampling)

    @property
    def edges(self) -> tuple[int, int]:
        """Columns before and after a part that are computed but not counted."""
        left, right = self.context
        return left, right

    def num_columns_of(self, num_frames: int) -> int:
        """Return the number of columns of an utterance, without context."""
        return -(-num_frames // self.subsampling)

    def recorded(self, record: FeatureRecord) -> FeatureRecord:
        """Return the record of the features of a network that is trained with these options."""
        return replace(record, subsampling=self.subsampling, edges=self.edges)

    def divide(self, num_frames: npt.ArrayLike) -> "Excerpts":
        """Cut utterances of num_frames (U,) frames into excerpts of nearly equal length."""
        columns = -(-np.asarray(num_frames, np.int64) // self.subsampling)
        pieces = np.ones_like(columns)
        if self.num_columns:
            pieces = np.maximum(1, (2 * columns + self.num_columns) // (2 * self.num_columns))
        utterance = np.repeat(np.arange(len(columns)), pieces)
        number = np.arange(len(utterance)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        first, end = ((number + more) * columns[utterance] // pieces[utterance] for more in (0, 1))
        return Excerpts(utterance, first, end - first)

    def context_warning(self, config: Config, excerpts: "Excerpts") -> list[str]:
        """Return a warning if most of what the network computes for excerpts is context; else no text.

        config: the reader block.
        """
        counted = int(excerpts.num_columns.sum())
        context = len(excerpts.num_columns) * sum(self.context)
        if context <= MUCH_CONTEXT * counted:
            return []
        return [
            f"{config.where('chunkContext')}: {config.full_name('chunkContext')} is {config.text('chunkContext')}, so "
            f"that the network computes {(context + counted) / counted:.0f} columns for each one that counts; expected "
            "as many as it looks to the left and right, or longer chunks"
        ]

    def shift(self, seed: int, sweep: int, key: str) -> int:
        """Return the input frame of column 0 in training: 0, 1 or -1 for a subsampling of 3, at random."""
        if self.subsampling == 1 or not self.shifted:
            return 0
        digest = hashlib.sha256(f"{seed} {sweep} {key}".encode("utf-8", "surrogateescape")).digest()
        drawn = int.from_bytes(digest[:8], "little") % self.subsampling
        return drawn - self.subsampling if 2 * drawn >= self.subsampling else drawn


class Excerpts(NamedTuple):
    """The excerpts of a corpus, those of an utterance one after the other.

    Attributes
    ----------
    utterance : (E,) int64
    first : (E,) int64
        First column of the utterance.
    num_columns : (E,) int64
        Number of columns, without context.
    """

    utterance: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    num_columns: npt.NDArray[np.int64]
