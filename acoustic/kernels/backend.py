"""The backend of a network: its array module (numpy or cupy), number type, threads and kernels.

Matrices are (rows, columns) in Fortran order, with a column per frame. numpy does not keep that order (`a @ b` and
`a.copy()` are in C order), so every result is written to a buffer made here.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from acoustic.runtime import blas
from acoustic.runtime.memory import aligned_empty
from acoustic.runtime.thread_team import ThreadTeam, default_threads
from readers.common.text import is_count
from readers.errors import ConfigError
from readers.minibatches.indicators import Indicators

DTYPES = {"float": np.float32, "double": np.float64}


def array_module(device: str) -> Any:
    """numpy for "cpu", cupy for "gpu" or "gpu:N"; the latter makes device N the current one."""
    kind, _, index = device.partition(":")
    if kind == "cpu" and not index:
        return np
    if kind == "gpu" and (not index or is_count(index)):
        try:
            import cupy  # optional: the extra `gpu`
        except ImportError as error:
            raise ConfigError(
                f"device {device!r}: cupy is not installed; expected `pip install '.[gpu]'`, or '.[gpu13]' for CUDA "
                "13, in the project's directory"
            ) from error
        if index:
            cupy.cuda.Device(int(index)).use()
        return cupy
    raise ConfigError(f"device {device!r}; expected cpu, gpu or gpu:N")


@dataclass(frozen=True)
class Backend:
    """Device, precision and number of threads of a network.

    Parameters
    ----------
    precision : str
        "float" (float32) or "double" (float64).
    device : str
        "cpu", "gpu" or "gpu:N".
    threads : int, optional
        Threads that divide a minibatch on the CPU; by default OMP_NUM_THREADS, else all processors.

    Raises
    ------
    ConfigError
        For an unknown precision or device, and for a GPU without cupy.
    """

    precision: str = "float"
    device: str = "cpu"
    threads: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.precision, str) or self.precision not in DTYPES:
            raise ConfigError(f"precision {self.precision!r}; expected float or double")
        _ = self.xp  # reports a missing device now, not at the first minibatch

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the array module, the kernels and the threads, of which another process has its own."""
        return type(self), (self.precision, self.device, self.threads)

    @cached_property
    def xp(self) -> Any:
        """The array module: numpy or cupy."""
        return array_module(self.device)

    @property
    def dtype(self) -> type:
        """numpy.float32 or numpy.float64."""
        return DTYPES[self.precision]

    @cached_property
    def kernels(self) -> Any:
        """The kernels: CompiledKernels for float32 on the CPU, ArrayKernels for double, CudaKernels on a GPU."""
        return self.kernels_with()

    def kernels_with(self, product_team: ThreadTeam | None = None) -> Any:
        """Return the kernels with a team that divides large products; by default the calling thread computes them."""
        if self.xp is np and self.dtype is np.float32:
            # numba: only a job that computes loads it
            from acoustic.kernels.compiled.elementwise import CompiledKernels

            return CompiledKernels(self.team, product_team)
        if self.xp is not np:
            from acoustic.kernels.cuda.elementwise import CudaKernels

            return CudaKernels(self.xp, self.dtype)
        from acoustic.kernels.arrays.elementwise import ArrayKernels

        return ArrayKernels(self.xp, product_team)

    @cached_property
    def team(self) -> ThreadTeam:
        """The threads that divide work: a single one on a GPU, or if the threads of BLAS cannot be controlled."""
        alone = self.xp is not np or not (blas.controllable() or blas.mkl_sgemm())
        return ThreadTeam(1 if alone else self.threads or default_threads())

    @cached_property
    def host_team(self) -> ThreadTeam:
        """The threads of work that is done on the host even if the matrices are on a GPU, such as lattices."""
        return self.team if self.xp is np else ThreadTeam(self.threads or default_threads())

    def empty(self, rows: int, cols: int) -> Any:
        """Return an uninitialised matrix (rows, cols) in Fortran order."""
        return self.memory(rows * cols).reshape((rows, cols), order="F")

    def memory(self, size: int) -> Any:
        """Return an uninitialised vector (size,); on the CPU see `aligned_empty`."""
        return self.xp.empty(size, dtype=self.dtype) if self.xp is not np else aligned_empty(size, self.dtype)

    def asarray(self, array: Any) -> Any:
        """Return a matrix on this device, in this precision and Fortran order; the same object if it is already."""
        if isinstance(array, Indicators):
            array = np.asarray(array)
        return self.xp.asarray(array, dtype=self.dtype, order="F")

    def to_host(self, array: Any) -> np.ndarray:
        """Return a matrix as a numpy array."""
        return array if self.xp is np else self.xp.asnumpy(array, order="F")
