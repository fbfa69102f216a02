"""The BLAS library: its functions, and MKL instead of OpenBLAS if that is installed.

The extra `mkl` installs MKL, whose float32 product is 10 to 13 % faster on one core of a Xeon with AVX-512 (160 against
145 GFLOPS). With the environment variable ARGONAUT_BLAS=numpy, MKL is not used. readers/common/environment.py sets the
number of threads of numpy's library.
"""

import ctypes
import importlib.metadata
import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from acoustic.runtime.memory import COLUMN_MAJOR, PLAIN, storage
from readers.common.environment import blas_thread_calls, numpys_library

MKL_FILE = re.compile(r"(lib)?mkl_rt(\.\d+)*\.(so|dylib|dll)(\.\d+)*")
# Products of the OpenBLAS in numpy's wheels and in distributions, with the type of their dimensions.
PRODUCT_CALLS = (
    ("scipy_cblas_{}gemm64_", ctypes.c_int64),
    ("cblas_{}gemm64_", ctypes.c_int64),
    ("scipy_cblas_{}gemm", ctypes.c_int),
    ("cblas_{}gemm", ctypes.c_int),
)
# Eigenvectors of a symmetric matrix, float64, Fortran calling convention.
EIGEN_CALLS = ("scipy_dsyevd_64_", "scipy_dsyevd_", "dsyevd_64_", "dsyevd_")
SEQUENTIAL = 1  # MKL computes on the calling thread


def controllable() -> bool:
    """Whether the number of threads of a product can be set."""
    return blas_thread_calls() is not None


def product_library() -> str:
    """The name of the library that computes float32 products on the CPU, for reports."""
    return "MKL" if mkl_sgemm() else "OpenBLAS" if controllable() else "numpy's BLAS"


@cache
def single_product() -> Callable[..., bool] | None:
    """A function (a, b, out, scale, keep) that calls that of `general_function` from compiled code; None without one.

    It returns False, and does nothing, for unsupported types and strides.
    """
    general = general_function()
    if general is None:
        return None
    from acoustic.runtime import gemm_calls  # numba: only a job that computes loads it

    address, wide = general

    def multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray, scale: float, keep: float) -> bool:
        try:
            return gemm_calls.multiply(address, wide, a, b, out, scale, keep)
        except TypeError:  # read-only, of another type, or not compiled
            return _by_library(_single_gemm(), a, b, out, scale, keep)

    return multiply


def multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray, scale: float, keep: float) -> bool:
    """Compute out = scale a b + keep out by a library, in the calling thread; return False if that is not possible."""
    single = single_product() if out.dtype == np.float32 else None
    if single is not None:
        return single(a, b, out, scale, keep)
    gemm = _numpys_gemm(out.dtype)
    return gemm is not None and _by_library(gemm, a, b, out, scale, keep)


@cache
def mkl_library() -> Any:
    """MKL, which computes in the calling thread alone; None if it is not installed or switched off."""
    if os.environ.get("ARGONAUT_BLAS", "").lower() == "numpy":
        return None
    try:
        files = importlib.metadata.files("mkl") or []
        path = next((file.locate() for file in files if MKL_FILE.fullmatch(file.name)), None)
        if path is None:
            return None
        library = ctypes.CDLL(str(path))
        library.MKL_Set_Threading_Layer(SEQUENTIAL)
        _ = library.cblas_sgemm
    except (importlib.metadata.PackageNotFoundError, OSError, AttributeError):
        return None
    return library


@cache
def mkl_sgemm() -> Callable[..., None] | None:
    """MKL's cblas_sgemm; None without MKL."""
    library = mkl_library()
    return None if library is None else _declared(library.cblas_sgemm, ctypes.c_int, ctypes.c_float)


def _single_gemm() -> Any:
    """cblas_sgemm of MKL, or of the library behind numpy."""
    return mkl_sgemm() or _numpys_gemm(np.dtype(np.float32))


@cache
def general_function() -> tuple[int, bool] | None:
    """The address of the cblas_sgemm for float32 products, and whether its dimensions have 64 bits; None if there is
    no known library.
    """
    gemm = _single_gemm()
    if gemm is None:
        return None
    return address_of(gemm), gemm.argtypes[3] is ctypes.c_int64


@cache
def eigen_function() -> int | None:
    """The address of LAPACK's dsyevd in MKL or numpy's library; None if there is no known library."""
    found = [(one, name) for one in (mkl_library(), numpys_library()) for name in EIGEN_CALLS if hasattr(one, name)]
    return address_of(getattr(*found[0])) if found else None


def address_of(function: Any) -> int:
    """The address of a function of a library."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def general_product(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> tuple[Any, ...] | None:
    """The arguments of `general_function` for a product: address, width and, for each matrix, the result of `storage`.

    None for matrices that it does not support.
    """
    function = general_function()
    places = [_storage(matrix, np.dtype(np.float32)) for matrix in (a, b, out)]
    out_place = places[2]
    if function is None or None in places or out_place is None or out_place[0] != PLAIN:
        return None
    return (*function, *places)


@cache
def _numpys_gemm(dtype: np.dtype) -> Any:
    """cblas_sgemm or cblas_dgemm of numpy's BLAS, which can scale products as np.dot cannot; None if unknown."""
    kinds = {np.dtype(np.float32): ("s", ctypes.c_float), np.dtype(np.float64): ("d", ctypes.c_double)}
    if dtype not in kinds:
        return None
    letter, real = kinds[dtype]
    library, calls = numpys_library(), [(name.format(letter), number) for name, number in PRODUCT_CALLS]
    found = [(name, number) for name, number in calls if hasattr(library, name)]
    return _declared(getattr(library, found[0][0]), found[0][1], real) if found else None


def _declared(gemm: Any, number: Any, real: Any) -> Any:
    """A cblas function with its argument types declared; number: the type of dimensions."""
    pointer, choice = ctypes.c_void_p, ctypes.c_int
    gemm.argtypes = [choice] * 3 + [number] * 3 + [real, pointer, number, pointer, number, real, pointer, number]
    gemm.restype = None
    return gemm


def _by_library(
    gemm: Callable[..., None], a: np.ndarray, b: np.ndarray, out: np.ndarray, scale: float, keep: float
) -> bool:
    """Compute a product by a cblas function; return False for strides that it does not support."""
    first, second, third = _storage(a, out.dtype), _storage(b, out.dtype), _storage(out, out.dtype)
    if first is None or second is None or third is None or third[0] != PLAIN:
        return False
    m, n = out.shape
    gemm(
        COLUMN_MAJOR, first[0], second[0], m, n, a.shape[1],
        scale, _address(a), first[1], _address(b), second[1], keep, _address(out), third[1],
    )  # fmt: skip
    return True


def _address(matrix: np.ndarray) -> int:
    return matrix.__array_interface__["data"][0]


def _storage(matrix: np.ndarray, dtype: np.dtype) -> tuple[int, int] | None:
    """The result of `storage`; None for another type, no elements, and strides that BLAS does not take."""
    if matrix.dtype != dtype or 0 in matrix.shape:
        return None
    found = storage(matrix.shape, matrix.strides, matrix.itemsize)
    return found if found[0] else None
