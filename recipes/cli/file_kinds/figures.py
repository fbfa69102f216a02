"""Figures of a file, and how they are written."""

# (name, value) in the order in which they are shown; names that begin with + are for -v alone.
Figures = list[tuple[str, object]]


def seconds(ticks: int) -> str:
    """A number of 100 ns ticks."""
    return f"{ticks * 1e-7:.2f} s"


def all_finite(values) -> bool:
    import numpy as np

    return bool(np.isfinite(values).all())
