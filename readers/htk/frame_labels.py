"""Conversion of labels with times to a class per frame, and the state lists that number the classes.

Source: CNTK book 3.4.2.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from readers.common.faults import OnFault
from readers.common.text import read_lines
from readers.errors import FormatError
from readers.htk.mlf import Label
from readers.htk.storage.label_fields import format_label
from readers.htk.units import TICKS_PER_FRAME

MAX_FRAMES = 2**25  # per utterance (93 hours); protects the memory from a damaged time


def frame_labels(
    labels: Sequence[Label], state_ids: Mapping[str, int] | None, where: str, frame_period: int = TICKS_PER_FRAME
) -> npt.NDArray[np.int32]:
    """Return the class of every frame, (T,) int32, for labels that cover the utterance from its first frame without
    gaps.

    state_ids: name -> class; if None, the score column is the class (CNTK's four-column form).
    frame_period: 100 ns units per frame, see `frame_bounds`.  Labels may cover no frames.
    Raises FormatError, beginning with `where`, for missing times, unknown names, gaps, overlaps, and if there are no
    frames.
    """
    if not labels:
        raise FormatError(f"{where}: no labels; expected at least one")
    bounds = frame_bounds(labels, where, frame_period)
    classes = _classes(labels, state_ids, where)
    if bounds[-1, 1] == 0:
        raise FormatError(f"{where}: the labels cover no frames; expected at least one")
    return np.repeat(classes, bounds[:, 1] - bounds[:, 0])


def frame_bounds(labels: Sequence[Label], where: str, frame_period: int = TICKS_PER_FRAME) -> npt.NDArray[np.int64]:
    """Return the first and last frame (exclusive) of each label, (n, 2) int64.

    The labels must cover the utterance from its first frame without gaps.  Times are 100 ns units if the last end
    exceeds half of frame_period, else frame numbers.  A time t belongs to frame int(t / frame_period + 0.5), because
    some aligners write times that are off by one unit.
    Raises FormatError, beginning with `where`, for missing times, gaps, overlaps and more than MAX_FRAMES.
    """
    if not labels:
        return np.zeros((0, 2), np.int64)
    try:
        times = np.array([(label.start, label.end) for label in labels], np.int64)
    except TypeError:
        bad = next(label for label in labels if label.start is None or label.end is None)
        raise FormatError(f"{where}: label {bad.name!r} has no time; expected start and end of every label") from None
    in_ticks = 2 * int(times.max()) > frame_period
    bounds = (2 * times + frame_period) // (2 * frame_period) if in_ticks else times
    starts, ends = bounds.T
    expected = np.concatenate(([0], ends[:-1]))
    wrong = np.flatnonzero(starts != expected)
    if wrong.size:
        i = int(wrong[0])
        raise FormatError(
            f"{where}: label {labels[i].name!r} begins at frame {starts[i]}; expected frame {expected[i]}, "
            + ("the first" if i == 0 else "where the label before it ends")
        )
    if np.any(ends < starts):
        i = int(np.flatnonzero(ends < starts)[0])
        raise FormatError(
            f"{where}: label {labels[i].name!r} is frames {starts[i]} to {ends[i]}; expected start <= end"
        )
    if ends[-1] > MAX_FRAMES:
        raise FormatError(f"{where}: the labels cover {ends[-1]} frames; expected at most {MAX_FRAMES}")
    return bounds


def _classes(labels: Sequence[Label], state_ids: Mapping[str, int] | None, where: str) -> npt.NDArray[np.int32]:
    if state_ids is None:
        scores = [label.score for label in labels]
        for label in labels:
            if label.score is None or not 0 <= label.score < 2**31 or label.score != int(label.score) or label.aux:
                raise FormatError(
                    f"{where}: label {format_label(label, where)!r}; expected four columns, the last a class number, "
                    "since no label mapping file is given"
                )
        return np.array(scores, np.int32)
    try:
        return np.array([state_ids[label.name] for label in labels], np.int32)
    except KeyError as fault:
        number = next(i for i, label in enumerate(labels, 1) if label.name == fault.args[0])
        raise FormatError(
            f"{where}: state {fault.args[0]!r} (label {number}) is not in the state list of {len(state_ids)} names; "
            "expected one of them; HVite's logical names must be replaced by physical ones"
        ) from None


def read_state_list(path: str | Path, on_fault: OnFault | None = None) -> list[str]:
    """Read a label mapping file: one name per line; the class of a name is the number of names before it.

    Parameters
    ----------
    path : path
        The file; blank lines are ignored.
    on_fault : callable, optional
        Called with each error instead of raising it; then also with an error for a blank line before a name, because
        some programs count blank lines.

    Returns
    -------
    list of str
        Names in the order of their classes.

    Raises
    ------
    FormatError
        For a repeated name, a line with several words, and an empty list.

    References
    ----------
    CNTK book 3.4.2 (labelMappingFile).
    """
    names: dict[str, int] = {}
    blank = 0
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split()
        fault = None
        if not fields:
            blank = blank or number
            continue
        if len(fields) > 1:
            fault = FormatError(f"{path}:{number}: {line.strip()!r}; expected one name per line")
        elif fields[0] in names:
            fault = FormatError(
                f"{path}:{number}: {fields[0]!r} is already at line {names[fields[0]]}; expected each name once"
            )
        if fault is not None:
            if on_fault is None:
                raise fault
            on_fault(fault)
        if blank and on_fault is not None:
            on_fault(
                FormatError(f"{path}:{blank}: blank line before a name; expected none, because some programs count it")
            )
        blank = 0
        names.setdefault(fields[0], number)
    if not names:
        raise FormatError(f"{path}: no names; expected one per line")
    return list(names)
