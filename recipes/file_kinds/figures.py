"""The figures of a file, and how they are formatted."""

from readers.htk.units import TICKS_PER_SECOND

# (name, value) in display order; figures whose names begin with + are shown only with -v.
Figures = list[tuple[str, object]]


def seconds(ticks: int) -> str:
    """Format a time in 100 ns units as seconds."""
    return f"{ticks / TICKS_PER_SECOND:.2f} s"


def all_finite(values) -> bool:
    import numpy as np

    return bool(np.isfinite(values).all())
