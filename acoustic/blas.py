"""The library behind matrix products: how many threads it uses, and Intel's MKL in its place where that is installed.

numpy has no call for the number of threads; the OpenBLAS in its wheels exports one, found through numpy's own extension
module.  The extra `mkl` installs MKL, whose float32 product is 10 to 13 % faster on one core of a Xeon with AVX-512
(160 against 145 GFLOPS); the environment variable ARGONAUT_BLAS=numpy leaves it alone.
"""

import contextlib
import ctypes
import importlib.metadata
import os
import re
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

# OpenBLAS as in numpy's wheels, as in distributions (64-bit and 32-bit integers).
THREAD_CALLS = (
    "scipy_openblas_{}_num_threads64_",
    "scipy_openblas_{}_num_threads",
    "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)
MKL_FILE = re.compile(r"(lib)?mkl_rt(\.\d+)*\.(so|dylib|dll)(\.\d+)*")
COLUMN_MAJOR, PLAIN, TRANSPOSED, SEQUENTIAL = 102, 111, 112, 1


@cache
def _thread_calls() -> tuple[Any, Any] | None:
    """(get, set) of the number of threads of the BLAS behind numpy; None when it is one that we do not know."""
    try:
        library = ctypes.CDLL(np._core._multiarray_umath.__file__)
    except (AttributeError, OSError):
        return None
    for name in THREAD_CALLS:
        with contextlib.suppress(AttributeError):
            return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


def controllable() -> bool:
    """Whether products can be told to use one thread each."""
    return _thread_calls() is not None


def product_library() -> str:
    """What float32 products on the CPU are made by, for reports."""
    return "MKL" if mkl_sgemm() else "OpenBLAS" if controllable() else "numpy's BLAS"


class _OneThread:
    """The context manager `one_thread`; counts its users, who may be in several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users, self._before = 0, 1

    def __enter__(self) -> None:
        if calls := _thread_calls():
            with self._lock:
                if self._users == 0:
                    self._before = calls[0]()
                    calls[1](1)
                self._users += 1

    def __exit__(self, *exception: object) -> None:
        if calls := _thread_calls():
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    calls[1](self._before)


one_thread = _OneThread()
"""While any thread is inside, products use one thread each, in the whole process; afterwards as many as before."""


def multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """out = a b, on the CPU; out (m, n) in Fortran order, of the operands' type, overlapping neither."""
    sgemm = mkl_sgemm() if out.dtype == np.float32 else None
    if sgemm is None or not _by_mkl(sgemm, a, b, out):
        np.dot(b.T, a.T, out=out.T)  # out' = b' a' is row-major, which is what numpy writes without a copy


@cache
def mkl_sgemm() -> Callable[..., None] | None:
    """MKL's cblas_sgemm, on the calling thread alone; None when MKL is not installed or not wanted."""
    if os.environ.get("ARGONAUT_BLAS", "").lower() == "numpy":
        return None
    try:
        files = importlib.metadata.files("mkl") or []
        path = next((file.locate() for file in files if MKL_FILE.fullmatch(file.name)), None)
        if path is None:
            return None
        library = ctypes.CDLL(str(path))
        library.MKL_Set_Threading_Layer(SEQUENTIAL)
        sgemm = library.cblas_sgemm
    except (importlib.metadata.PackageNotFoundError, OSError, AttributeError):
        return None
    number, pointer, real = ctypes.c_int, ctypes.c_void_p, ctypes.c_float
    sgemm.argtypes = [number] * 6 + [real, pointer, number, pointer, number, real, pointer, number]
    sgemm.restype = None
    return sgemm


def _by_mkl(sgemm: Callable[..., None], a: np.ndarray, b: np.ndarray, out: np.ndarray) -> bool:
    """Multiply with MKL; False, having done nothing, for strides it does not take."""
    first, second, third = _storage(a), _storage(b), _storage(out)
    if first is None or second is None or third is None or third[0] != PLAIN:
        return False
    m, n = out.shape
    sgemm(
        COLUMN_MAJOR, first[0], second[0], m, n, a.shape[1],
        1.0, _address(a), first[1], _address(b), second[1], 0.0, _address(out), third[1],
    )  # fmt: skip
    return True


def _address(matrix: np.ndarray) -> int:
    return matrix.__array_interface__["data"][0]


def _storage(matrix: np.ndarray) -> tuple[int, int] | None:
    """(PLAIN or TRANSPOSED, distance of columns or rows in elements) of a float32 matrix; None for other strides."""
    (rows, cols), (down, across) = matrix.shape, matrix.strides
    if matrix.dtype != np.float32 or rows == 0 or cols == 0:
        return None
    if (down == 4 or rows == 1) and (cols == 1 or (across >= 4 * rows and across % 4 == 0)):
        return PLAIN, rows if cols == 1 else across // 4
    if (across == 4 or cols == 1) and (rows == 1 or (down >= 4 * cols and down % 4 == 0)):
        return TRANSPOSED, cols if rows == 1 else down // 4
    return None
