"""The process: its processor cores, its environment variables, and the time that it has spent compiling kernels."""

import contextlib
import gc
import os
import time
from collections.abc import Callable, Iterator


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


class Compilation:
    """The kernels that numba has compiled in this process; those found in its cache do not count.

    num_kernels: functions of the project; cache: directory where the last one is kept; observer: called at every step.
    `readers.common.kernels` calls `begin` and `end`, which may be nested, while it holds numba's lock.  Python's
    garbage collector, which would take a tenth of the time, waits meanwhile.
    """

    def __init__(self) -> None:
        self.num_kernels, self.cache = 0, ""
        self.observer: Callable[[Compilation], None] | None = None
        self._depth, self._began, self._finished = 0, 0.0, 0.0
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
            self.num_kernels, self.cache = self.num_kernels + 1, cache
        self._observe()

    def _observe(self) -> None:
        if self.observer:
            self.observer(self)


compilation = Compilation()


class Stopwatch:
    """Seconds since it was made, without those spent compiling kernels."""

    def __init__(self) -> None:
        self._start = time.monotonic() - compilation.seconds

    @property
    def seconds(self) -> float:
        return max(time.monotonic() - compilation.seconds - self._start, 1e-9)  # another thread may compile now
