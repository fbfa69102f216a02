"""Hands over what a job makes of each recording, or writes it to a file, and lists the recordings that failed."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from decoder.recognizer.jobs.options import TranscribeOptions
from decoder.recognizer.jobs.pronunciation.options import PronounceOptions
from decoder.recognizer.jobs.pronunciation.result import Pronunciation
from decoder.recognizer.jobs.recordings import STANDARD_INPUT, RecordingFile, by_name, find_recordings
from decoder.recognizer.transcript import Transcript
from decoder.search.batch import in_order
from readers.common.faults import one_line
from readers.common.files import refuse_inputs, require_writable
from readers.common.report import IRREGULAR, RunReport
from readers.corpora.folder import TEXTS
from readers.errors import ArgonautError

Result = TypeVar("Result", Transcript, Pronunciation)


class Delivery(Generic[Result]):
    """The recordings of a job, its report, which the caller counts done ones in, and the files that were written.

    extension: of the files.  inputs: what must not be overwritten, besides the recordings and their transcripts.
    Raises ConfigError for a folder without audio and two files of one name, and OSError.
    """

    def __init__(
        self, options: TranscribeOptions | PronounceOptions, extension: str, inputs: Iterable[str | Path | None]
    ):
        self.recordings, unread = find_recordings(options.audio, options.reading.raw is not None)
        self.report = RunReport("files")
        self.paths: list[Path] = []
        self._threads = options.threads
        self._files: dict[RecordingFile, Path] = {}
        if options.output is not None:
            by_name(self.recordings)
            require_writable(options.output / "file")
            self._files = {each: options.output / f"{each.name}.{extension}" for each in self.recordings}
            refuse_inputs(self._files.values(), [*inputs, *(each.path for each in self.recordings)])
            _refuse_transcripts(self._files)
        for path in unread:
            self.report.skip(path, f"{path}: {Path(path).suffix} cannot be read; convert it to WAV")

    def results(
        self, work: Callable[[RecordingFile], Result], deliver: Callable[[RecordingFile, Result, Path | None], None]
    ) -> Iterator[tuple[RecordingFile, Result | None]]:
        """Do the work on the recordings in threads, and yield them in order, each with its result once it is delivered.

        deliver: takes also the file to write, if any.  The result is None if either raises an ArgonautError or OSError.
        """
        for recording, result in in_order(work, self.recordings, self._threads):
            file = self._files.get(recording)
            try:
                if isinstance(result, Exception):
                    raise result
                deliver(recording, result, file)
            except BrokenPipeError:
                raise
            except (ArgonautError, OSError) as fault:
                self.report.fail(recording.where, one_line(fault))
                yield recording, None
            else:
                self.paths += [] if file is None else [file]
                self.report.marked += [(recording.where, IRREGULAR, note) for note in result.notes]
                yield recording, result


def _refuse_transcripts(files: Mapping[RecordingFile, Path]) -> None:
    """Raise FileExistsError for a file to write that lies beside its recording, where a corpus has transcripts."""
    for recording, file in files.items():
        if recording.path == STANDARD_INPUT or file.suffix.lower() not in TEXTS or not file.is_file():
            continue
        if not _directories(file).isdisjoint(_directories(Path(recording.path))):
            text = f"may be the transcript of {recording.where} and would be overwritten; expected another directory"
            raise FileExistsError(errno.EEXIST, text, os.fspath(file))


def _directories(path: Path) -> set[str]:
    """Return the directories of a file and, if it is a link, of the file that it leads to."""
    return {os.path.realpath(path.parent), os.fspath(Path(os.path.realpath(path)).parent)}
