"""`argon --workers` and `argon --scheduler`: processes decode or align shards of the list."""

import argparse
import contextlib
import errno
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from readers.common.environment import available_cores, one_blas_thread, using_cores
from readers.common.faults import is_shortage
from readers.errors import ArgonautError, ConfigError
from recipes.cli.command import MachineOptions
from recipes.cli.console import one_line
from recipes.cli.machines import open_cluster, print_line, scheduler_address

PATIENCE = 10.0  # seconds in which a process may finish its shard after Ctrl-C
BYTES_PER_SECOND = 16_000  # of 40 features every 10 ms, or of compressed audio
SECONDS = 5.0  # of an utterance whose length is unknown without reading it


def add_process_options(group) -> None:
    """Add --workers and --scheduler."""
    group.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="divide the list among N processes, which share the cores of --threads (default: threads of one process)",
    )
    text = MachineOptions.declaration("scheduler").help
    group.add_argument("--scheduler", metavar="ADDRESS", type=scheduler_address, help=text)


def check_processes(arguments: argparse.Namespace) -> None:
    """Raise ConfigError for values of the options of processes that cannot be used."""
    if arguments.workers is not None and arguments.workers < 1:
        raise ConfigError(f"command line: --workers {arguments.workers}; expected at least 1")
    if arguments.scheduler and arguments.workers:
        raise ConfigError("command line: --workers and --scheduler; expected only one of them")
    for name in ("workers", "scheduler"):
        for other in ("stream", "precompile"):
            if getattr(arguments, name) and getattr(arguments, other):
                flag = {"stream": "--stream", "precompile": "-precompile"}[other]
                raise ConfigError(f"command line: --{name} with {flag}; expected it only with a list of utterances")


@dataclass(frozen=True)
class ShardSettings:
    """What workers need besides the utterances.

    Attributes
    ----------
    pipeline : callable
        Makes the pipeline of the command from its arguments.
    arguments : tuple of (str, object)
        The command line.
    guesses : tuple of Pronunciation
        Guessed pronunciations.
    threads : int
        Threads that decode a shard.
    directory : str
        Where the MLF entries of a shard are written; "" for no MLF.
    """

    pipeline: Callable
    arguments: tuple[tuple[str, Any], ...]
    guesses: tuple
    threads: int
    directory: str

    def open(self) -> Callable:
        """Return the pipeline; its notes are not repeated, because the command has printed them."""
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            return self.pipeline(argparse.Namespace(**dict(self.arguments)), self.guesses)


def decode_shard(numbered: Sequence[tuple], settings: ShardSettings) -> list:
    """Return Decoded or ArgonautError for each (number, entry), in a worker.

    The entries for the MLF are written to a file, which the results refer to.
    """
    from decoder.search.batch import in_order
    from readers.common.jobs.worker import kept

    pipeline, results = kept(ShardSettings.open, settings), []
    with using_cores(settings.threads), one_blas_thread:
        for _, result in in_order(pipeline, numbered, settings.threads):
            if isinstance(result, OSError) and is_shortage(result):
                raise result
            results.append(ArgonautError(one_line(result)) if isinstance(result, Exception) else result)
    return with_labels_in_file(numbered, results, settings.directory) if settings.directory else results


def with_labels_in_file(numbered: Sequence[tuple], results: Iterable, directory: str) -> list:
    """Write the labels of results to a file of this shard, as entries of an MLF, and refer to them there."""
    from readers.common.file_part import FilePart
    from readers.common.files import atomic_write
    from readers.htk.storage.label_fields import format_entry

    path, place, found = Path(directory, f"{numbered[0][0]}.mlf"), 0, []
    if not Path(directory).is_dir():  # the command has ended, or its directory cannot be seen here
        raise FileNotFoundError(errno.ENOENT, "no such directory; expected that workers see the files", directory)
    with atomic_write(path) as file:
        for (_, entry), result in zip(numbered, results, strict=True):
            if not isinstance(result, Exception) and result.labels is not None:
                text = format_entry(mlf_name(entry.key), result.labels, path).encode("utf-8", "surrogateescape")
                file.write(text)
                result = replace(result, labels=FilePart(path, place, len(text)))
                place += len(text)
            found.append(result)
    return found


@contextlib.contextmanager
def open_processes(
    arguments: argparse.Namespace, make_pipeline: Callable, given: Sequence, guesses: Sequence
) -> Iterator["Processes | None"]:
    """Yield the processes of --workers or --scheduler; None without these options.

    given: the command line as pairs, before the pipeline of this process was opened.
    """
    if not (arguments.workers or arguments.scheduler):
        yield None
        return
    from readers.common.jobs.places import ONE_BLAS_THREAD
    from readers.common.jobs.runner import process_runner
    from readers.common.temporary import temporary_directory

    with contextlib.ExitStack() as stack:
        if arguments.scheduler:
            runner, threads = open_cluster(arguments.scheduler), arguments.threads or 1
        else:
            runner = process_runner(arguments.workers, print_line, ONE_BLAS_THREAD, PATIENCE)
            threads = max(1, available_cores() // arguments.workers)
        stack.callback(runner.close)
        directory = ""
        if arguments.outmlf:
            place = Path(arguments.outmlf).absolute()
            place.parent.mkdir(parents=True, exist_ok=True)
            directory = str(stack.enter_context(temporary_directory(place)))
        yield Processes(runner, ShardSettings(make_pipeline, tuple(given), tuple(guesses), threads, directory))


class Processes:
    """Decodes or aligns utterances in other processes."""

    def __init__(self, runner: Any, settings: ShardSettings):
        self.runner, self.settings = runner, settings

    def results(
        self, numbered: Iterable[tuple], total: int, stopped: Callable[[], bool]
    ) -> Iterator[tuple[tuple, Any]]:
        """Yield ((number, entry), Decoded or exception) in order; see Runner.each."""
        return self.runner.each(
            decode_shard, numbered, self.settings, seconds=lambda one: seconds_of(one[1]), total=total, stopped=stopped
        )


def seconds_of(entry: Any) -> float:
    """Return about how long an utterance is, from the range in the list or the size of its file."""
    if getattr(entry, "num_frames", None) is not None:
        return entry.num_frames / (16_000 if getattr(entry, "channel", None) is not None else 100)
    if not hasattr(entry, "offset"):  # an archive has many utterances
        with contextlib.suppress(OSError):
            return Path(entry.path).stat().st_size / BYTES_PER_SECOND
    return SECONDS


def mlf_name(key: str) -> str:
    """Return the entry's name in the MLF: `*/key.rec` like HVite's, so that it matches in any directory."""
    return f"{key}.rec" if "/" in key else f"*/{key}.rec"
