"""A kernel that several processes of pytest-xdist need at the same time is compiled by one of them, for all.

numba's cache on disk serves processes that come later.  Two that begin together would both compile, which takes twenty
seconds for the decoder's search; here the second waits for the first and then finds the kernel in the cache.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: each process compiles what it needs
    fcntl = None


class Lock:
    """A lock among processes; within one it is held by numba's own, and may be taken again."""

    def __init__(self, path: Path) -> None:
        self.path, self.depth = path, 0

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        with self.path.open("w") as file:
            if self.depth == 0:
                fcntl.flock(file, fcntl.LOCK_EX)  # given back when the file is closed
            self.depth += 1
            try:
                yield
            finally:
                self.depth -= 1


def compile_once(folder: Path) -> None:
    """Let numba compile a function only while no other process that was told of this folder compiles the same one."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    if fcntl is None:
        return
    locks: dict[str, Lock] = {}
    compile_now = Dispatcher.compile

    def compile_alone(self, signature):
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
        with global_compiler_lock:  # before the other one in all threads, lest two of them wait for each other
            lock = locks.setdefault(name, Lock(folder / f"{name}.lock"))
            with lock.held():
                return compile_now(self, signature)

    Dispatcher.compile = compile_alone
