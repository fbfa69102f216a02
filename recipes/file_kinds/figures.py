"""The figures of a file, and how they are formatted."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from readers.htk.units import TICKS_PER_SECOND

if TYPE_CHECKING:
    from readers.common.arrays import Array

# (name, value) in display order; figures whose names begin with + are shown only with -v.
Figures = list[tuple[str, object]]
Kind = tuple[str, Callable[[str], Figures]]  # name of the kind, function that returns the figures of a file


def seconds(ticks: int) -> str:
    """Format a time in 100 ns units as seconds."""
    return f"{ticks / TICKS_PER_SECOND:.2f} s"


def all_finite(values: "Array") -> bool:
    import numpy as np

    return bool(np.isfinite(values).all())
