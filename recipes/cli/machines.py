"""The options of commands that work in threads, in processes or on a Dask cluster."""

import argparse
import sys

from readers.errors import ConfigError


def add_machine_options(parser, unit: str = "threads") -> None:
    """Add -j and --scheduler to a parser or a group of options; unit: what -j counts, threads or processes."""
    parser.add_argument("-j", "--workers", type=int, metavar="N", help=f"number of {unit} (default: one per core)")
    add_scheduler_option(parser)


def add_scheduler_option(parser) -> None:
    """Add --scheduler to a parser or a group of options."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        type=scheduler_address,
        help="divide the work among the workers of a Dask scheduler: tcp://HOST:PORT, or the file that `dask scheduler "
        "--scheduler-file` wrote; the workers must see the same files",
    )


def scheduler_address(text: str) -> str:
    """Return the value of --scheduler, which an unset variable of a script would make empty."""
    if not text:
        raise ConfigError("empty; expected tcp://HOST:PORT or a file")
    return text


def check_machines(arguments: argparse.Namespace, unit: str = "thread") -> None:
    """Raise ConfigError if both options are given, or less than one thread."""
    if arguments.workers is not None and arguments.workers < 1:
        raise ConfigError(f"-j {arguments.workers}: expected at least 1 {unit}")
    if arguments.scheduler and arguments.workers:
        raise ConfigError("command line: -j and --scheduler; expected only one of them")


def open_runner(arguments: argparse.Namespace):
    """Return the Runner that the options ask for: in threads, or on a cluster."""
    from readers.common.jobs.runner import thread_runner

    return open_cluster(arguments.scheduler) if arguments.scheduler else thread_runner(arguments.workers)


def open_process_runner(arguments: argparse.Namespace):
    """Return the Runner that the options of a command in processes ask for: here, in processes, or on a cluster."""
    from readers.common.jobs.places import ONE_BLAS_THREAD
    from readers.common.jobs.runner import process_runner, thread_runner

    if arguments.scheduler:
        return open_cluster(arguments.scheduler)
    workers = arguments.workers or 1
    return process_runner(workers, print_line, ONE_BLAS_THREAD) if workers > 1 else thread_runner(1)


def open_cluster(scheduler: str):
    """Return a Runner on the workers of a Dask scheduler; lost shards are reported on standard error."""
    from readers.common.jobs.runner import cluster_runner

    return cluster_runner(scheduler, print_line)


def print_line(line: str) -> None:
    """Print a line about shards on standard error."""
    print(line, file=sys.stderr, flush=True)
