"""Audacity's label tracks: lines `start<tab>end<tab>label`, in seconds."""

import math
from collections.abc import Iterable
from pathlib import Path

from readers.common.files import write_lines
from readers.common.text import is_number, read_lines
from readers.errors import FormatError
from readers.results.timed_words import MOST_SECONDS, Word

FREQUENCIES = "\\"  # begins a line with the frequencies of the label before it


def read_labels(path: str | Path) -> list[Word]:
    """Read the labels of a track.

    Parameters
    ----------
    path : path
        As Audacity exports it.  Frequencies of labels are ignored.

    Returns
    -------
    list of Word
        By time.

    Raises
    ------
    FormatError
        With file and line, for a malformed line.
    OSError

    References
    ----------
    Audacity manual, "Importing and Exporting Labels".
    """
    labels = []
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip() or line.startswith(FREQUENCIES):
            continue
        fields = line.split("\t", 2)
        times = [float(field) if is_number(field) else math.nan for field in map(str.strip, fields[:2])]
        if len(times) < 2 or not 0 <= times[0] <= times[1] < MOST_SECONDS:
            raise FormatError(f"{path}:{number}: {line[:60]!r}; expected start, end and label, separated by tabs")
        labels.append(Word(" ".join("".join(fields[2:]).split()), times[0], times[1]))
    return sorted(labels, key=lambda label: label.start)


def write_labels(path: str | Path, labels: Iterable[Word]) -> None:
    """Write a label track.

    Parameters
    ----------
    path : path
    labels : iterable of Word
        Blanks within a label become single ones; times have six decimals, as Audacity writes them.
    """
    write_lines(path, (f"{label.start:.6f}\t{label.end:.6f}\t{' '.join(label.text.split())}" for label in labels))
