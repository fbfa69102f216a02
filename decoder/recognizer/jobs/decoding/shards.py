"""Decodes or aligns shards of a list in other processes."""

import contextlib
import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from decoder.recognizer.jobs.decoding.options import DecodeOptions
from decoder.recognizer.jobs.decoding.utterances import Numbered, mlf_name
from decoder.search.batch import in_order
from readers.common.environment import available_cores, one_blas_thread, using_cores
from readers.common.faults import is_shortage, one_line
from readers.common.file_part import FilePart
from readers.common.files import atomic_write
from readers.common.jobs.places import LocalProcesses
from readers.common.jobs.runner import Runner
from readers.common.jobs.worker import kept
from readers.common.report import silent
from readers.common.temporary import temporary_directory
from readers.errors import ArgonautError
from readers.htk.dictionary import Pronunciation
from readers.htk.storage.label_fields import format_entry

BYTES_PER_SECOND = 16_000  # of 40 features every 10 ms, or of compressed audio
SECONDS = 5.0  # of an utterance whose length is unknown without reading it


@dataclass(frozen=True)
class ShardSettings:
    """What workers need besides the utterances.

    Attributes
    ----------
    pipeline : callable
        Makes the pipeline from the options.
    options : DecodeOptions
    guessed : tuple of Pronunciation
        Guessed pronunciations.
    threads : int
        Threads that decode a shard.
    directory : str
        Where the MLF entries of a shard are written; "" for no MLF.
    """

    pipeline: Callable[..., Any]
    options: DecodeOptions
    guessed: tuple[Pronunciation, ...]
    threads: int
    directory: str

    def open(self) -> Any:
        """Return the pipeline; its notes are not repeated, because the job has told them."""
        return self.pipeline(self.options, silent, self.guessed)


def decode_shard(numbered: Sequence[Numbered], settings: ShardSettings) -> list[Any]:
    """Return Decoded or ArgonautError for each (number, entry), in a worker.

    The entries for the MLF are written to a file, which the results refer to.
    """
    pipeline = kept(ShardSettings.open, settings)
    results = list[Any]()
    with using_cores(settings.threads), one_blas_thread:
        for _, result in in_order(pipeline, numbered, settings.threads):
            if isinstance(result, OSError) and is_shortage(result):
                raise result
            results.append(ArgonautError(one_line(result)) if isinstance(result, Exception) else result)
    return with_labels_in_file(numbered, results, settings.directory) if settings.directory else results


def with_labels_in_file(numbered: Sequence[tuple[int, Any]], results: Iterable[Any], directory: str) -> list[Any]:
    """Write the labels of results to a file of this shard, as entries of an MLF, and refer to them there."""
    path = Path(directory, f"{numbered[0][0]}.mlf")
    position = 0
    referring: list[Any] = []
    if not Path(directory).is_dir():  # the command has ended, or its directory cannot be seen here
        raise FileNotFoundError(errno.ENOENT, "no such directory; expected that workers see the files", directory)
    with atomic_write(path) as file:
        for (_, entry), result in zip(numbered, results, strict=True):
            if not isinstance(result, Exception) and result.labels is not None:
                text = format_entry(mlf_name(entry.key), result.labels, path).encode("utf-8", "surrogateescape")
                file.write(text)
                result = replace(result, labels=FilePart(path, position, len(text)))
                position += len(text)
            referring.append(result)
    return referring


@contextlib.contextmanager
def open_settings(
    runner: Runner, make_pipeline: Callable[..., Any], options: DecodeOptions, guessed: Sequence[Pronunciation]
) -> Iterator[ShardSettings]:
    """Yield what the workers of a runner need, and remove their files afterwards."""
    is_local = isinstance(runner.place, LocalProcesses)
    threads = max(1, available_cores() // runner.place.size) if is_local else options.search.threads or 1
    with contextlib.ExitStack() as stack:
        directory = ""
        if options.output.outmlf:
            path = options.output.outmlf.absolute()
            path.parent.mkdir(parents=True, exist_ok=True)
            directory = str(stack.enter_context(temporary_directory(path)))
        yield ShardSettings(make_pipeline, options, tuple(guessed), threads, directory)


def decode_shards(
    runner: Runner, settings: ShardSettings, numbered: Iterable[Numbered], total: int, stopped: Callable[[], bool]
) -> Iterator[tuple[Numbered, Any]]:
    """Yield ((number, entry), Decoded or exception) in order; see Runner.each."""
    return runner.each(
        decode_shard, numbered, settings, seconds=lambda item: seconds_of(item[1]), total=total, stopped=stopped
    )


def seconds_of(entry: Any) -> float:
    """Return about how long an utterance is, from the range in the list or the size of its file."""
    num_frames: int | None = getattr(entry, "num_frames", None)
    if num_frames is not None:
        return num_frames / (16_000 if getattr(entry, "channel", None) is not None else 100)
    if not hasattr(entry, "offset"):  # an archive has many utterances
        with contextlib.suppress(OSError):
            return Path(entry.path).stat().st_size / BYTES_PER_SECOND
    return SECONDS
