"""The array module behind the network: numpy or cupy, the number type, and the few operations that need care.

Matrices are (rows, columns) in Fortran order, a column per frame.  numpy does not keep that order by itself
(`a @ b` and `a.copy()` come back row by row), so every result goes into a buffer made here.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from acoustic.runtime import blas
from acoustic.runtime.memory import aligned_empty
from acoustic.runtime.products import multiply
from acoustic.runtime.thread_team import Team, default_threads
from readers.errors import ConfigError
from readers.minibatches.indicators import Indicators

DTYPES = {"float": np.float32, "double": np.float64}


def array_module(device: str) -> Any:
    """numpy for "cpu", cupy for "gpu" or "gpu:N" (N makes that device the current one)."""
    kind, _, index = device.partition(":")
    if kind == "cpu" and not index:
        return np
    if kind == "gpu" and (not index or index.isdigit()):
        try:
            import cupy  # optional: the extra `gpu`
        except ImportError as error:
            raise ConfigError(
                f"device {device!r}: cupy is not installed; expected `pip install '.[gpu]'` in the project's directory"
            ) from error
        if index:
            cupy.cuda.Device(int(index)).use()
        return cupy
    raise ConfigError(f"device {device!r}; expected cpu, gpu or gpu:N")


def matmul_into(xp: Any, a: Any, b: Any, out: Any, scale: float = 1.0, keep: float = 0.0) -> None:
    """out = scale a b + keep out, out (m, n) in Fortran order; `a @ b` would make a matrix in C order, and a copy."""
    if xp is np:
        multiply(a, b, out, scale, keep)
    elif scale == 1 and keep == 0:
        xp.dot(b.T, a.T, out=out.T)
    else:
        xp.add(keep * out if keep else 0, scale * xp.dot(b.T, a.T).T, out=out)


@dataclass(frozen=True)
class Backend:
    """Where and how exactly a network computes.

    precision: "float" (float32) or "double" (float64); device: "cpu", "gpu" or "gpu:N"; threads: how many share a
    minibatch on the CPU (default: OMP_NUM_THREADS, else every processor).  Raises ConfigError.
    """

    precision: str = "float"
    device: str = "cpu"
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.precision not in DTYPES:
            raise ConfigError(f"precision {self.precision!r}; expected float or double")
        _ = self.xp  # a device that is not there is an error now, not at the first minibatch

    @cached_property
    def xp(self) -> Any:
        return array_module(self.device)

    @property
    def dtype(self) -> type:
        return DTYPES[self.precision]

    @cached_property
    def kernels(self) -> Any:
        """Elementwise operations: compiled ones for float32 on the CPU, the same in terms of `xp` elsewhere."""
        if self.xp is np and self.dtype is np.float32:
            # numba: only a job that computes loads it
            from acoustic.kernels.compiled.elementwise import CompiledKernels

            return CompiledKernels(self.team)
        from acoustic.kernels.arrays.elementwise import ArrayKernels

        return ArrayKernels(self.xp)

    @cached_property
    def team(self) -> Team:
        """The threads that share work: one where the device or the BLAS behind numpy has its own way."""
        alone = self.xp is not np or not (blas.controllable() or blas.mkl_sgemm())
        return Team(1 if alone else self.threads or default_threads())

    def empty(self, rows: int, cols: int) -> Any:
        """An uninitialised matrix (rows, cols) in Fortran order."""
        return self.memory(rows * cols).reshape((rows, cols), order="F")

    def memory(self, size: int) -> Any:
        """So many uninitialised numbers; on the CPU see `aligned_empty`."""
        return self.xp.empty(size, dtype=self.dtype) if self.xp is not np else aligned_empty(size, self.dtype)

    def asarray(self, array: Any) -> Any:
        """The matrix on this device, in this precision and Fortran order; the same object when it already is."""
        if isinstance(array, Indicators):
            array = np.asarray(array)
        return self.xp.asarray(array, dtype=self.dtype, order="F")

    def to_host(self, array: Any) -> np.ndarray:
        """The matrix as a numpy array."""
        return array if self.xp is np else self.xp.asnumpy(array, order="F")
