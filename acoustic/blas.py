"""How many threads numpy's BLAS uses for one product.

numpy has no call for it; the library in its wheels exports one, found through numpy's own extension module.
"""

import contextlib
import ctypes
from collections.abc import Iterator
from functools import cache

import numpy as np

# OpenBLAS as in numpy's wheels, as in distributions (64-bit and 32-bit integers).
NAMES = (
    "scipy_openblas_{}_num_threads64_",
    "scipy_openblas_{}_num_threads",
    "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)


@cache
def _calls() -> tuple | None:
    """(get, set) of the BLAS behind numpy; None when it is one that we do not know."""
    try:
        library = ctypes.CDLL(np._core._multiarray_umath.__file__)
    except (AttributeError, OSError):
        return None
    for name in NAMES:
        with contextlib.suppress(AttributeError):
            return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


def controllable() -> bool:
    """Whether the number of threads can be set."""
    return _calls() is not None


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Products inside use `count` threads each, in the whole process; afterwards as many as before."""
    if not controllable():
        yield
        return
    get, put = _calls()
    before = get()
    put(count)
    try:
        yield
    finally:
        put(before)
