"""The environment of the process: its processor cores and environment variables."""

import contextlib
import os
from collections.abc import Iterator


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
