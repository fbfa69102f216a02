"""Runners of commands that work in processes or on a Dask cluster."""

import sys
from typing import TYPE_CHECKING

from readers.errors import ConfigError

if TYPE_CHECKING:
    from readers.common.jobs import Runner


def scheduler_address(text: str) -> str:
    """Return the value of --scheduler, which an unset variable of a script would make empty."""
    if not text:
        raise ConfigError("empty; expected tcp://HOST:PORT or a file")
    return text


def open_processes(workers: int) -> "Runner":
    """Return a Runner in processes of this machine, for work that threads cannot share; for one, in this thread."""
    from readers.common.jobs.places import ONE_BLAS_THREAD
    from readers.common.jobs.runner import process_runner, thread_runner

    return process_runner(workers, print_line, ONE_BLAS_THREAD) if workers > 1 else thread_runner(1)


def open_cluster(scheduler: str) -> "Runner":
    """Return a Runner on the workers of a Dask scheduler; lost shards are reported on standard error."""
    from readers.common.jobs.runner import cluster_runner

    return cluster_runner(scheduler, print_line)


def print_line(line: str) -> None:
    """Print a line about shards on standard error."""
    print(line, file=sys.stderr, flush=True)
