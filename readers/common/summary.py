"""What `argonaut info` prints about a file: each reader has a function that sums a file up in figures."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.text import read_lines

if TYPE_CHECKING:
    from readers.common.arrays import Array

# (name, value) in display order; figures whose names begin with + are shown only with -v.
Figures = list[tuple[str, object]]


def all_finite(values: "Array") -> bool:
    import numpy as np

    return bool(np.isfinite(values).all())


def extent(values: Iterable[float], form: str = "") -> str:
    """Return the least and the greatest value, as `2 to 7`."""
    numbers = list(values)
    return f"{min(numbers):{form}} to {max(numbers):{form}}"


def num_files(files: Iterable[str | Path]) -> str:
    """Return the number of different files, and of those that are missing."""
    different = set(files)
    return f"{len(different)}{missing(different)}"


def missing(files: Iterable[str | Path]) -> str:
    """Return how many files are missing; "" if all are there."""
    count = sum(not Path(file).is_file() for file in files)
    return f", {count} of them not there" if count else ""


def rows_of(path: str | Path) -> list[list[str]]:
    """Return the fields of each line that is not blank."""
    return [line.split() for line in read_lines(path) if line.strip()]
