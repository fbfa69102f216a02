"""Alignments of copies whose speed was changed."""

from collections.abc import Sequence

import numpy as np

from readers.errors import FormatError
from readers.htk.frame_labels import frame_bounds
from readers.htk.mlf import Label


def stretch_labels(
    labels: Sequence[Label], num_frames: tuple[int, int], speed: float, window: float, period: int, where: str
) -> list[Label]:
    """Return the alignment of a copy with another speed, given that of the recording.

    A frame of the copy gets the label of the recording's frame whose window has the nearest centre, at the same place
    of the speech.  Then boundaries are moved by the fewest frames with which every label that has frames keeps one.

    Parameters
    ----------
    labels : sequence of Label
        Without gaps, from the first frame to the last.
    num_frames : (int, int)
        Frames of the recording, and of the copy.
    speed : float
        Above 1 the copy is shorter.
    window : float
        Length of a window in frame periods.
    period : int
        Time between frames in 100 ns units.
    where : str
        Begins error messages.

    Returns
    -------
    list of Label
        Times in 100 ns units, to the last frame of the copy; without scores, which belong to the recording.

    Raises
    ------
    FormatError
        If the labels have gaps, another number of frames than the recording, or more labels than the copy has frames.

    Examples
    --------
    >>> from readers.htk import Label
    >>> labels = [Label(0, 500000, "a"), Label(500000, 1000000, "b")]
    >>> [(one.end, one.name) for one in stretch_labels(labels, (10, 12), 0.9, 2.5, 100000, "utt")]
    [(600000, 'a'), (1200000, 'b')]
    """
    old, new = num_frames
    bounds = frame_bounds(labels, where, period)
    labelled = int(bounds[-1, 1]) if len(bounds) else 0
    if labelled != old:
        raise FormatError(f"{where}: labels of {labelled} frames; expected {old}, the frames of the audio")
    nonempty = np.flatnonzero(bounds[:, 1] > bounds[:, 0])
    if not len(nonempty):
        raise FormatError(f"{where}: no label of a frame; expected labels of all frames")
    if len(nonempty) > new:
        raise FormatError(f"{where}: {len(nonempty)} labels; expected at most {new}, the frames at speed {speed:g}")
    centres = (np.arange(new) + window / 2) * speed - window / 2
    sources = np.clip(np.rint(centres).astype(np.int64), 0, old - 1)
    ends = np.searchsorted(sources, bounds[nonempty, 1])
    order = np.arange(len(nonempty))
    ends = np.maximum.accumulate(ends - order - 1) + order + 1  # each label ends after the one before
    ends = np.maximum(ends, order + 1)
    ends = np.minimum(ends, new - order[::-1])
    ends[-1] = new
    begins = np.insert(ends[:-1], 0, 0)
    return [
        Label(int(begin) * period, int(end) * period, labels[index].name, None, _without_scores(labels[index].aux))
        for index, begin, end in zip(nonempty.tolist(), begins, ends)
    ]


def _without_scores(aux: tuple[tuple[str, float | None], ...]) -> tuple[tuple[str, None], ...]:
    return tuple((name, None) for name, _ in aux)
