"""The process: cores, threads of numpy's BLAS library, environment variables, and the time spent compiling kernels."""

import contextlib
import ctypes
import gc
import importlib
import logging
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from readers.errors import ConfigError

# OpenBLAS as in numpy's wheels, as in distributions (64-bit and 32-bit integers).
THREAD_CALLS = (
    "scipy_openblas_{}_num_threads64_",
    "scipy_openblas_{}_num_threads",
    "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)
OMP_THREADS = "OMP_NUM_THREADS"
SWITCH_SECONDS = 0.0005
CHECKOUT = Path(__file__).parents[2]
DISTRIBUTION = "argonaut-asr"
UNKNOWN_VERSION = "0+unknown"
COMPILATION_INTERVAL = 5.0  # seconds between lines about the compilation of kernels
LONG_COMPILATION = 1.0  # seconds after which the first line appears


@cache
def program_version() -> str:
    """Return the version of the program; of a checkout that is not installed, the one in its pyproject.toml.

    Returns
    -------
    str
        "0+unknown" for packages that were copied without pyproject.toml.
    """
    import importlib.metadata
    import tomllib

    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(DISTRIBUTION)
    with contextlib.suppress(OSError, ValueError):  # also of a damaged file
        project = tomllib.loads(CHECKOUT.joinpath("pyproject.toml").read_text("utf-8")).get("project", {})
        if project.get("name") == DISTRIBUTION:  # packages may lie in a directory of another project
            return str(project["version"])
    return UNKNOWN_VERSION


def available_cores() -> int:
    """Return the number of cores that this process may use; inside `using_cores`, at most as many as there."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, *_limits.counts, cores)


@contextlib.contextmanager
def using_cores(count: int) -> Iterator[None]:
    """Limit the process to a number of cores while the body runs.

    `available_cores` returns at most this number, matrix products use at most so many threads, and networks that are
    made in the body and child processes find the number in OMP_NUM_THREADS.  Of several numbers, of nested bodies or of
    other threads, the smallest holds.

    Parameters
    ----------
    count : int
        Number of cores, at least 1.

    Raises
    ------
    ConfigError
        For a number below 1.
    """
    if count < 1:
        raise ConfigError(f"using_cores: {count}; expected at least 1")
    with _limits.including(count), BlasThreads(count):
        yield


class _Limits:
    """The numbers given to the bodies of `using_cores` that run now, in any thread."""

    def __init__(self) -> None:
        self.counts: tuple[int, ...] = ()
        self._lock = threading.Lock()
        self._before: str | None = None  # OMP_NUM_THREADS outside all bodies

    @contextlib.contextmanager
    def including(self, count: int) -> Iterator[None]:
        with self._lock:
            if not self.counts:
                self._before = os.environ.get(OMP_THREADS)
            self._set((*self.counts, count))
        try:
            yield
        finally:
            with self._lock:
                at = self.counts.index(count)
                self._set(self.counts[:at] + self.counts[at + 1 :])

    def _set(self, counts: tuple[int, ...]) -> None:
        self.counts = counts
        text = str(min(counts)) if counts else self._before
        if text is None:
            os.environ.pop(OMP_THREADS, None)
        else:
            os.environ[OMP_THREADS] = text


_limits = _Limits()


@cache
def numpys_library() -> Any:
    """The library behind numpy, through its extension module; None if that is not found."""
    import numpy as np  # commands that compute nothing start without it

    with contextlib.suppress(ImportError, OSError):
        path = importlib.import_module("numpy._core._multiarray_umath").__file__
        if sys.platform == "win32":  # a module shows its own functions only, not those of the libraries that it uses
            path = next(map(str, Path(np.__file__).parents[1].glob("numpy.libs/*openblas*.dll")), path)
        return ctypes.CDLL(path)
    return None


@cache
def blas_thread_calls() -> tuple[Any, Any] | None:
    """The functions that get and set the number of threads of numpy's BLAS; None for an unknown library."""
    library = numpys_library()
    patterns = [name for name in THREAD_CALLS if hasattr(library, name.format("get"))]
    return (
        (getattr(library, patterns[0].format("get")), getattr(library, patterns[0].format("set"))) if patterns else None
    )


class BlasThreads:
    """Context manager: while any thread is inside, every product of numpy uses at most `count` threads.

    Of several numbers the smallest holds.  When the last thread leaves, the number is that from before.
    """

    _lock = threading.Lock()
    _inside: ClassVar[list[int]] = []  # one number for each user
    _before, _now = 1, 1

    def __init__(self, count: int) -> None:
        self.count = count

    def __enter__(self) -> None:
        if calls := blas_thread_calls():
            with BlasThreads._lock:
                if not self._inside:
                    BlasThreads._before = BlasThreads._now = calls[0]()
                self._inside.append(self.count)
                self._set(calls[1])

    def __exit__(self, *exception: object) -> None:
        if calls := blas_thread_calls():
            with BlasThreads._lock:
                self._inside.remove(self.count)
                self._set(calls[1])

    def _set(self, function: Any) -> None:
        threads = min(self._before, *self._inside, self._before)
        if threads != self._now:
            BlasThreads._now = threads
            function(threads)


one_blas_thread = BlasThreads(1)
"""While any thread is inside, every product of numpy is computed by the thread that asks for it."""


@contextlib.contextmanager
def environment_variables(**values: str) -> Iterator[None]:
    """Set environment variables, also those of child processes, while the body runs."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Python's garbage collector waits while the body imports modules and opens models, nearly all of which stays."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextlib.contextmanager
def quick_thread_switches() -> Iterator[None]:
    """While the body runs, a thread that waits for Python's interpreter lock asks for it after 0.5 ms instead of 5.

    Threads that mostly compute in compiled kernels then wait half as long for those that run Python.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Compilation:
    """The kernels that numba has compiled in this process; those found in its cache do not count.

    num_kernels: functions of the project; cache: directory where the last one is kept; is_kept: whether all could be
    stored; observer: called at every step.
    `readers.common.kernels` calls `begin` and `end`, which may be nested, while it holds numba's lock.  Python's
    garbage collector, which would take a tenth of the time, waits meanwhile.
    """

    def __init__(self) -> None:
        self.num_kernels = 0
        self.cache = ""
        self.is_kept = True
        self.observer: Callable[[Compilation], None] | None = None
        self._depth = 0
        self._began = self._finished = 0.0
        self._collects = True

    @property
    def seconds(self) -> float:
        """Time spent compiling, including the kernel in progress."""
        return self._finished + (time.monotonic() - self._began if self._depth else 0.0)

    def begin(self) -> None:
        if not self._depth:
            self._began = time.monotonic()
            self._collects = gc.isenabled()
            gc.disable()
        self._depth += 1
        self._observe()

    def end(self, cache: str = "") -> None:
        """Note that a function has been compiled; cache: the directory where it is kept, "" for one of numba's own."""
        if self._depth == 1:
            self._finished += time.monotonic() - self._began
            if self._collects:
                gc.enable()
        self._depth -= 1
        if cache:
            self.num_kernels = self.num_kernels + 1
            self.cache = cache
        self._observe()

    def _observe(self) -> None:
        if self.observer:
            self.observer(self)


class CompilationNotes:
    """Tells the user why a first run takes longer: kernels are compiled.

    compiled: what was compiled before does not count; tell: receives each line.
    """

    def __init__(self, compiled: Compilation, tell: Callable[[str], None]):
        self.seconds = compiled.seconds
        self.num_kernels = compiled.num_kernels
        self.tell = tell
        self.next = LONG_COMPILATION

    def __call__(self, compiled: Compilation) -> None:
        seconds = compiled.seconds - self.seconds
        if seconds < max(self.next, LONG_COMPILATION) or not compiled.cache:
            return
        if self.next <= LONG_COMPILATION:
            kept = f"they are kept in {kernel_directory(compiled.cache)}"
            text = f"compiling kernels, each once (all: argonaut warmup); {kept}"
            if not compiled.is_kept:  # a warning has said so
                text = "compiling kernels"
        else:
            text = f"compiling kernels: {compiled.num_kernels - self.num_kernels} after {seconds:.0f} s"
        self.next = seconds + COMPILATION_INTERVAL
        self.tell(text)

    def close(self, compiled: Compilation) -> None:
        if self.next > LONG_COMPILATION:
            number = compiled.num_kernels - self.num_kernels
            seconds = compiled.seconds - self.seconds
            self.tell(f"compiled {number} kernel{'s' if number > 1 else ''} in {seconds:.0f} s")


def kernel_directory(cache: str) -> str:
    """Return where compiled kernels are kept, given the directory of one of them."""
    directory = Path(cache)
    return f"directories such as {cache}" if directory.name == "__pycache__" else str(directory.parent)


def _log_note(text: str) -> None:
    """Log a line; the default of programs, whose workers leave it to them."""
    if multiprocessing.parent_process() is None:
        logging.getLogger("argonaut").warning(text)


compilation = Compilation()
compilation.observer = CompilationNotes(compilation, _log_note)


class Stopwatch:
    """Seconds since it was made, without those spent compiling kernels."""

    def __init__(self) -> None:
        self._start = time.monotonic() - compilation.seconds

    @property
    def seconds(self) -> float:
        return max(time.monotonic() - compilation.seconds - self._start, 1e-9)  # another thread may compile now
