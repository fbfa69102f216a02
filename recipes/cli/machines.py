"""The options of commands that work in threads or on a Dask cluster."""

import argparse

from readers.errors import ConfigError


def add_machine_options(parser) -> None:
    """Add -j and --scheduler to a parser or a group of options."""
    parser.add_argument("-j", "--workers", type=int, metavar="N", help="number of threads (default: one per core)")
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="use the workers of this Dask scheduler, which read the same files"
    )


def check_machines(arguments: argparse.Namespace) -> None:
    """Raise ConfigError if both options are given, or less than one thread."""
    if arguments.workers is not None and arguments.workers < 1:
        raise ConfigError(f"-j {arguments.workers}: expected at least 1 thread")
    if arguments.scheduler and arguments.workers:
        raise ConfigError("command line: -j and --scheduler; expected only one of them")


def open_runner(arguments: argparse.Namespace):
    """Return the threads or the cluster that the options ask for; both have `results` and `close`."""
    from decoder.gaussians.runners import Cluster, Threads

    if arguments.scheduler:
        return Cluster(arguments.scheduler, lambda line: print(line, flush=True))
    return Threads(arguments.workers)
