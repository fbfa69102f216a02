"""Alignments for the chain topology: phones with times, and where they may begin at the rate of the network's output.

Frame t of the output stands for the input frames from `subsampling` * t on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from decoder.sequence_training.chain.options import ChainTiming
from decoder.sequence_training.chain.outputs import ChainOutputs
from decoder.sequence_training.chain.phone_lm import BOUNDARY
from decoder.tying import StateRun
from readers.errors import GraphError
from readers.htk.mlf import Label
from readers.htk.units import TICKS_PER_FRAME
from readers.sources.chain import AlignedNumerator


@dataclass(frozen=True)
class PhoneSegments:
    """The phones of an utterance with their times.

    Attributes
    ----------
    phones : list of str
    starts : (n,) int64
        Input frame in which each phone begins.
    num_frames : int
        Number of input frames.
    """

    phones: list[str]
    starts: np.ndarray
    num_frames: int


def phone_segments(runs: Sequence[StateRun]) -> PhoneSegments:
    """Return the phones of a state alignment.

    Parameters
    ----------
    runs : sequence of StateRun
        Of `decoder.tying.state_runs`.

    Returns
    -------
    PhoneSegments

    Raises
    ------
    GraphError
        For an alignment without frames.
    """
    if not runs:
        raise GraphError("alignment without frames; expected at least one")
    firsts = [run for i, run in enumerate(runs) if i == 0 or runs[i - 1].visit != run.visit]
    starts = np.array([run.start for run in firsts], dtype=np.int64)
    return PhoneSegments([run.phone for run in firsts], starts, runs[-1].end)


def begin_windows(segments: PhoneSegments, timing: ChainTiming) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and last output frame in which each phone may begin, (n,) int64 each.

    Every phone has one output frame at least, and lies within its segment widened by the tolerance.  Both results rise
    strictly, and the first phone begins in frame 0.

    Raises GraphError if the phones do not fit.
    """
    factor = timing.subsampling
    tolerance = timing.tolerance
    ends = np.append(segments.starts[1:], segments.num_frames)
    allowed = -(-np.maximum(segments.starts - tolerance, 0) // factor)  # the first output frame of each phone
    limit = -(-np.minimum(ends + tolerance, segments.num_frames) // factor)  # the frame after its last one
    numbers = np.arange(len(ends))
    earliest = np.maximum.accumulate(allowed - numbers) + numbers
    latest = np.minimum(limit - 1, np.append(0, limit[:-1]))
    latest = np.minimum.accumulate((latest - numbers)[::-1])[::-1] + numbers
    wrong = np.flatnonzero(earliest > latest)
    if wrong.size:
        i = int(wrong[0])
        raise GraphError(
            f"phones around '{segments.phones[i]}', phone {i + 1} at frame {segments.starts[i]}, are too short for one "
            f"output of {factor} frames each; expected longer phones, or a larger tolerance than {tolerance} frames"
        )
    return earliest, latest


def aligned_numerator(
    numbers: Sequence[int], segments: PhoneSegments, outputs: ChainOutputs, timing: ChainTiming
) -> AlignedNumerator:
    """Return the numerator of an aligned utterance.

    Parameters
    ----------
    numbers : sequence of int
        The phones' numbers in `outputs`.
    segments : PhoneSegments
    outputs : ChainOutputs
    timing : ChainTiming

    Returns
    -------
    AlignedNumerator

    Raises
    ------
    GraphError
        If the phones do not fit into the frames.
    """
    earliest, latest = begin_windows(segments, timing)
    pairs = outputs_of(numbers, outputs)
    return AlignedNumerator(
        num_frames=timing.output_frames(segments.num_frames),
        num_input_frames=segments.num_frames,
        first=np.array([first for first, _ in pairs], dtype=np.int32),
        further=np.array([further for _, further in pairs], dtype=np.int32),
        earliest=earliest.astype(np.int32),
        latest=latest.astype(np.int32),
    )


def outputs_of(numbers: Sequence[int], outputs: ChainOutputs) -> list[tuple[int, int]]:
    """Return the outputs of the first and further frames of each phone of an utterance."""
    padded = [BOUNDARY, *numbers, BOUNDARY]
    return [outputs.outputs(*padded[i : i + 3]) for i in range(len(numbers))]


def chain_labels(
    numbers: Sequence[int],
    segments: PhoneSegments,
    outputs: ChainOutputs,
    timing: ChainTiming,
) -> list[Label]:
    """Return an alignment in the outputs of the chain topology, for tying and for training on frames.

    Parameters
    ----------
    numbers : sequence of int
        The phones' numbers in `outputs`.
    segments : PhoneSegments
    outputs : ChainOutputs
    timing : ChainTiming

    Returns
    -------
    list of Label
        Times are those of input frames; boundaries are at multiples of `subsampling` frames.

    Raises
    ------
    GraphError
        If the phones do not fit into the frames.
    """
    earliest, latest = begin_windows(segments, timing)
    nominal = -(-segments.starts // timing.subsampling)
    places = np.arange(len(nominal))
    begins = np.maximum.accumulate(np.clip(nominal, earliest, latest) - places) + places
    ends = np.append(begins[1:], timing.output_frames(segments.num_frames))
    labels = []

    def add(begin: int, end: int, output: int) -> None:
        start, stop = begin * timing.subsampling, min(end * timing.subsampling, segments.num_frames)
        labels.append(Label(start * TICKS_PER_FRAME, stop * TICKS_PER_FRAME, outputs.names[output]))

    for begin, end, (first, further) in zip(begins.tolist(), ends.tolist(), outputs_of(numbers, outputs)):
        add(begin, begin + 1, first)
        if end > begin + 1:
            add(begin + 1, end, further)
    return labels
