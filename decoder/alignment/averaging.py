"""The mean of several alignments of the same recording, whose errors partly cancel out.

References
----------
Stolcke et al., Highly accurate phonetic segmentation using boundary correction models and system fusion, ICASSP 2014.
"""

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from decoder.alignment.boundaries.matching import segments
from readers.errors import FormatError
from readers.htk.frame_labels import frame_bounds
from readers.htk.mlf import Label
from readers.htk.trees import split_triphone
from readers.htk.units import TICKS_PER_FRAME


class Average(NamedTuple):
    """A mean of alignments.

    Attributes
    ----------
    labels : list of Label
        Without scores.
    num_used : int
        Alignments that count; the others have other phones.
    """

    labels: list[Label]
    num_used: int


class _Phone(NamedTuple):
    name: str
    first: int  # labels, `last` exclusive
    last: int


def average_alignments(
    alignments: Sequence[Sequence[Label]],
    silence: Collection[str] = ("sil", "sp"),
    frame_period: int = TICKS_PER_FRAME,
    where: str = "alignment",
) -> Average:
    """The first of several alignments, with the means of the phones' starts and ends.

    Parameters
    ----------
    alignments : sequence of sequence of Label
        States with times in 100 ns ticks or frames, and beside the first state of each phone the phone or triphone.
        The first alignment's states are kept, and so are its silences between words, as long as a frame is left for
        them.  Silences in a row share their frames as they do in the alignments with the same row, on average.
    silence : collection of str
        Phones that alignments may have in other places.
    frame_period : int
        Frame period in 100 ns ticks.
    where : str
        Name of the utterance in messages.

    Returns
    -------
    Average
        Boundaries are rounded to frames.  Inside a phone, states keep their shares of its frames, about, and have at
        least one.

    Raises
    ------
    FormatError
        For labels without times, without phones, or with gaps.
    """
    first = alignments[0]
    phones = _phones(first, where)
    bounds = frame_bounds(first, where, frame_period)
    if bounds[-1, 1] == 0:
        raise FormatError(f"{where}: the labels cover no frames; expected at least one")
    unit = frame_period if 2 * (first[-1].end or 0) > frame_period else 1  # some programs write frames
    phones = [
        phone for phone in phones if phone.name not in silence or bounds[phone.first, 0] < bounds[phone.last - 1, 1]
    ]
    spoken = [i for i, phone in enumerate(phones) if phone.name not in silence]
    names = [phones[i].name for i in spoken]
    times = []
    rows = []
    for labels in alignments:
        parts = segments(labels, 1, (), lambda name: split_triphone(name)[1], where)
        speech = [part for part in parts if part[0] not in silence]
        if [name for name, _, _ in speech] == names and labels[-1].end == first[-1].end:
            times.append([(start, end) for _, start, end in speech])
            rows.append(_silences(parts, silence, unit))
    mean = np.array(times, dtype=np.float64).reshape(len(times), -1, 2).mean(axis=0)
    mean /= unit
    # The frame at which each phone of the first alignment begins, silence included; the last one is the end.
    begins = np.zeros(len(phones) + 1, dtype=np.int64)
    begins[-1] = bounds[-1, 1]
    for number, i in enumerate(spoken):
        follows = number > 0 and spoken[number - 1] == i - 1
        # Without silence in the first alignment, one boundary stands for both sides of the others' silence.
        start = (mean[number - 1, 1] + mean[number, 0]) / 2 if follows else mean[number, 0]
        if i:
            begins[i] = _rounded(start)
        if i + 1 < len(phones) and i + 1 not in spoken:
            begins[i + 1] = _rounded(mean[number, 1])
    edges = [-1, *spoken, len(phones)]
    for row, (before, after) in enumerate(pairwise(edges)):
        if after - before > 2:
            alike = [lengths for row_names, lengths in (states[row] for states in rows) if row_names == rows[0][row][0]]
            sizes = _shared_out(np.mean(alike, axis=0), int(begins[after] - begins[before + 1]))
            begins[before + 2 : after] = begins[before + 1] + np.cumsum(sizes)[:-1]
    averaged: list[Label] = []
    for i, phone in enumerate(phones):
        phone_bounds = bounds[phone.first : phone.last]
        sizes = _shared_out(phone_bounds[:, 1] - phone_bounds[:, 0], int(begins[i + 1] - begins[i]))
        if phone.name not in silence and np.any(sizes == 0):
            raise FormatError(f"{where}: phone '{phone.name}' has fewer frames than states; expected one for each")
        averaged += _with_sizes(first[phone.first : phone.last], sizes, int(begins[i]), frame_period)
    return Average(averaged, len(times))


def _phones(labels: Sequence[Label], where: str) -> list[_Phone]:
    begins = [i for i, label in enumerate(labels) if label.aux]
    if not begins or begins[0] != 0:
        raise FormatError(f"{where}: a state without a phone; expected the phone beside its first state")
    ends = [*begins[1:], len(labels)]
    return [_Phone(split_triphone(labels[a].aux[0][0])[1], a, b) for a, b in zip(begins, ends)]


def _silences(
    parts: Sequence[tuple[str, int, int]], silence: Collection[str], unit: int
) -> list[tuple[list[str], list[int]]]:
    """Names and frames of the silences before each spoken phone, and at the end; without those of no frames."""
    rows: list[tuple[list[str], list[int]]] = [([], [])]
    for name, start, end in parts:
        num_frames = (2 * end + unit) // (2 * unit) - (2 * start + unit) // (2 * unit)  # rounded as in frame_bounds
        if name not in silence:
            rows.append(([], []))
        elif num_frames:
            rows[-1][0].append(name)
            rows[-1][1].append(num_frames)
    return rows


def _rounded(frames: float) -> int:
    return int(np.ceil(frames - 0.5))


def _shared_out(sizes: np.ndarray, total: int) -> np.ndarray:
    """Divide `total` frames in proportion to sizes, with at least one each; with too few frames, to the first ones."""
    if total < len(sizes):
        return (np.arange(len(sizes)) < total).astype(np.int64)
    ends = np.floor(np.cumsum(sizes) * (total / sizes.sum()) + 0.5).astype(np.int64)
    places = np.arange(1, len(sizes) + 1)
    ends = np.maximum.accumulate(ends - places) + places  # grow by at least one
    ends = np.minimum(np.maximum(ends, places), total - len(sizes) + places)
    return np.diff(ends, prepend=0)


def _with_sizes(labels: Sequence[Label], sizes: np.ndarray, begin: int, period: int) -> list[Label]:
    """The labels with other lengths, without those of no frames and without scores."""
    resized = []
    start = begin
    for label, size in zip(labels, sizes.tolist()):
        if size:
            aux = tuple((name, None) for name, _ in label.aux)
            resized.append(Label(start * period, (start + size) * period, label.name, None, aux))
            start += size
    return resized
