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

from readers.config.config import Config
from readers.config.feature_record import MAX_CONTEXT, MAX_SUBSAMPLING, FeatureRecord
from readers.errors import ConfigError

MUCH_CONTEXT = 4  # columns of context for each one that counts; 20 are usual beside a chunk of 50
EXCERPT_NAMES = ("frameSubsampling", "frameShift", "chunkFrames", "chunkContext")


@dataclass(frozen=True)
class ExcerptOptions:
    """Options of a reader block.

    Attributes
    ----------
    subsampling : int
        Input frames per column.
    shifted : bool
        Whether training draws shifts (frameShift).
    num_columns : int
        Columns of an excerpt (chunkFrames in input frames); 0 for whole utterances.
    context : (int, int)
        Columns before and after an excerpt that are not counted.
    """

    subsampling: int = 1
    shifted: bool = True
    num_columns: int = 0
    context: tuple[int, int] = (0, 0)

    @classmethod
    def from_config(cls, config: Config, frame_mode: bool, truncated: bool) -> "ExcerptOptions":
        """Return the options of a reader block.  Raises ConfigError."""
        subsampling, chunk = config.int("frameSubsampling", 1), config.int("chunkFrames", 0)
        context = config.ints("chunkContext", "0:0")

        def refuse(name: str, expected: str) -> None:
            raise ConfigError(
                f"{config.where(name)}: {config.full_name(name)} is {config.text(name)}; expected {expected}"
            )

        if not 1 <= subsampling <= MAX_SUBSAMPLING:
            refuse("frameSubsampling", f"1 to {MAX_SUBSAMPLING}")
        if chunk and chunk < subsampling:
            refuse("chunkFrames", f"at least {subsampling}, the frames of a column, or 0 for whole utterances")
        if len(context) != 2 or not all(0 <= count <= MAX_CONTEXT for count in context):
            refuse("chunkContext", f"two numbers of columns, left:right, 0 to {MAX_CONTEXT}")
        left, right = context
        if frame_mode:
            for name, given in (("frameSubsampling", subsampling > 1), ("chunkFrames", chunk)):
                if given:
                    refuse(name, "it only with frameMode=false, which keeps the frames of an utterance in order")
        if frame_mode or truncated:
            for name, given in (("chunkFrames", chunk), ("chunkContext", left or right)):
                if given:
                    refuse(name, "it only with frameMode=false and truncated=false")
        return cls(subsampling, config.bool("frameShift", True), -(-chunk // subsampling), (left, right))

    def num_columns_of(self, num_frames: np.ndarray | int) -> np.ndarray | int:
        """Return the number of columns of utterances, without context."""
        return -(-num_frames // self.subsampling)

    def recorded(self, record: FeatureRecord) -> FeatureRecord:
        """Return the record of the features of a network that is trained with these options."""
        return replace(record, subsampling=self.subsampling, edges=self.context)

    def divide(self, num_frames: np.ndarray) -> "Excerpts":
        """Cut utterances of num_frames (U,) frames into excerpts of nearly equal length."""
        columns = self.num_columns_of(np.asarray(num_frames, np.int64))
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
        counted, context = int(excerpts.count.sum()), len(excerpts.count) * sum(self.context)
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
    count : (E,) int64
        Number of columns, without context.
    """

    utterance: np.ndarray
    first: np.ndarray
    count: np.ndarray
