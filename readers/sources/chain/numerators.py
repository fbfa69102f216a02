"""Numerators of lattice-free MMI in an indexed archive: what each utterance's transcript allows, without probabilities.

A numerator from an alignment has for each phone its outputs and the frames in which it may begin.  One from a
transcript is an acceptor of sequences of outputs, any alignment of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from readers.errors import FormatError
from readers.results.indexed_archive import PARTIAL, ArchiveRecord, ArchiveWriter
from readers.sources.chain.composition import MOST_OPEN
from readers.sources.chain.denominator_file import AGAIN, check_range

KIND = "numerators"
MOST_FRAMES = 2**25


@dataclass(frozen=True, eq=False)
class AlignedNumerator:
    """The numerator of an aligned utterance.

    Attributes
    ----------
    num_frames : int
        At the rate of the network's output.
    num_input_frames : int
        At the rate of the features.
    first, further : (n,) int32
        Outputs of the first frame and of the further frames of each phone.
    earliest, latest : (n,) int32
        The first and last frame in which each phone may begin, so that the phones before and after have one frame at
        least; both rise strictly.
    """

    num_frames: int
    num_input_frames: int
    first: np.ndarray
    further: np.ndarray
    earliest: np.ndarray
    latest: np.ndarray

    names: ClassVar[Sequence[str]] = ("first", "further", "earliest", "latest")

    def check(self, num_outputs: int, where: str) -> None:
        """Check what kernels rely on.

        Parameters
        ----------
        num_outputs : int
        where : str
            Name of the utterance in messages.

        Raises
        ------
        FormatError
        """
        size = len(self.first)
        if not size or any(len(getattr(self, name)) != size for name in self.names):
            raise FormatError(f"{where}: arrays of different lengths; expected one value for each phone; {AGAIN}")
        check_range(self.first, num_outputs, "first", where)
        check_range(self.further, num_outputs, "further", where)
        earliest = self.earliest
        latest = self.latest
        rising = np.all(earliest[1:] > earliest[:-1]) and np.all(latest[1:] > latest[:-1])
        if not rising or earliest[0] or latest[0] or latest[-1] >= self.num_frames or np.any(earliest > latest):
            raise FormatError(f"{where}: times of phones do not rise from 0 to {self.num_frames}; {AGAIN}")
        ends = np.append(latest[1:], self.num_frames)
        if np.any(np.searchsorted(earliest, ends) - np.arange(size) > MOST_OPEN):
            raise FormatError(
                f"{where}: more than {MOST_OPEN} phones at one time; expected a smaller tolerance; {AGAIN}"
            )


@dataclass(frozen=True, eq=False)
class TranscriptNumerator:
    """The numerator of a transcript without times: a deterministic acceptor of sequences of outputs.

    Attributes
    ----------
    num_frames, num_input_frames : int
        At the rates of the network's output and of the features.
    from_state, to_state, output : (A,) int32
        Sorted by from_state; state 0 is the first.
    final : (S,) bool
    """

    num_frames: int
    num_input_frames: int
    from_state: np.ndarray
    to_state: np.ndarray
    output: np.ndarray
    final: np.ndarray

    names: ClassVar[Sequence[str]] = ("from_state", "to_state", "output", "final")

    def check(self, num_outputs: int, where: str) -> None:
        """Check what kernels rely on.

        Parameters
        ----------
        num_outputs : int
        where : str
            Name of the utterance in messages.

        Raises
        ------
        FormatError
        """
        size = len(self.from_state)
        if not size or len(self.to_state) != size or len(self.output) != size or not self.final.any():
            raise FormatError(f"{where}: no arcs, no final state or arrays of different lengths; {AGAIN}")
        check_range(self.from_state, len(self.final), "from_state", where)
        check_range(self.to_state, len(self.final), "to_state", where)
        check_range(self.output, num_outputs, "output", where)
        if np.any(self.from_state[1:] < self.from_state[:-1]):
            raise FormatError(f"{where}: arcs out of order; expected them sorted by from_state; {AGAIN}")
        keys = self.from_state.astype(np.int64) * num_outputs + self.output
        if len(np.unique(keys)) < size:
            raise FormatError(
                f"{where}: two arcs of a state with one output; expected a deterministic acceptor; {AGAIN}"
            )


Numerator = AlignedNumerator | TranscriptNumerator
_TYPES = {"final": "|b1"}


def write_numerators(
    path: str | Path, numerators: Iterable[tuple[str, Numerator]], metadata: Mapping[str, Any]
) -> None:
    """Write an archive of numerators, completely or not at all.

    Parameters
    ----------
    path : str or Path
    numerators : iterable of (str, AlignedNumerator or TranscriptNumerator)
        Names of utterances, each once, and their numerators.
    metadata : mapping
        `fingerprint` of the denominator, `num_outputs`, and `subsampling`, the number of input frames of an output.
    """
    path = Path(path)
    path.with_name(path.name + PARTIAL).unlink(missing_ok=True)
    with ArchiveWriter(path, KIND, metadata) as archive:
        for name, numerator in numerators:
            arrays = {key: getattr(numerator, key).astype(_TYPES.get(key, "<i4")) for key in numerator.names}
            described = {"num_frames": numerator.num_frames, "num_input_frames": numerator.num_input_frames}
            archive.add(name, arrays, described)


def numerator_of(record: ArchiveRecord, num_outputs: int, where: str) -> Numerator:
    """Return the numerator in a record.

    Raises FormatError if the record is damaged.
    """
    kind = AlignedNumerator if "first" in record.arrays else TranscriptNumerator
    for name in kind.names:
        array = record.arrays.get(name)
        if array is None or array.dtype.str != _TYPES.get(name, "<i4") or array.ndim != 1:
            raise FormatError(f"{where}: no vector {name} of type {_TYPES.get(name, '<i4')}; expected one; {AGAIN}")
    counts: list[Any] = [record.metadata.get(name) for name in ("num_frames", "num_input_frames")]
    if any(type(count) is not int or not 0 < count <= MOST_FRAMES for count in counts):
        raise FormatError(f"{where}: {counts} frames; expected numbers; {AGAIN}")
    numerator = kind(counts[0], counts[1], *(record.arrays[name] for name in kind.names))
    numerator.check(num_outputs, where)
    return numerator
