"""Writes copies of many recordings as FLAC files, in parallel; continues if interrupted."""

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from features.augmentation.copies import CopyMaker, load
from features.augmentation.settings import Augmentation, Copy, Recording
from readers.audio.audio_file import read_audio, write_flac
from readers.audio.header import read_audio_header
from readers.common.arrays import Float32Array
from readers.common.faults import os_reason
from readers.common.files import write_json
from readers.common.jobs.runner import Runner, ShardLost, thread_runner
from readers.common.jobs.worker import kept
from readers.common.report import RunReport
from readers.errors import ArgonautError, FormatError

RECORD = "augment.json"  # describes the copies in a directory


@dataclass(frozen=True)
class Made:
    """A copy that exists as a file.

    Parameters
    ----------
    recording : Recording
        What it is a copy of.
    copy : Copy
    name : str
        Name of the copy: prefix and name of the recording.
    path : Path
    rate : int
        Sample rate in Hz.
    num_samples : (int, int)
        Length of the recording and of the copy.
    """

    recording: Recording
    copy: Copy
    name: str
    path: Path
    rate: int
    num_samples: tuple[int, int]


@dataclass
class Outcome:
    """Results of one recording: copies made, and losses (name of the copy, reason)."""

    made: list[Made] = field(default_factory=list)
    losses: list[tuple[str, str]] = field(default_factory=list)


def augment_recordings(
    recordings: Sequence[Recording],
    settings: Augmentation,
    directory: str | Path,
    workers: int | None = None,
    progress: Callable[..., None] | None = None,
    runner: Runner | None = None,
) -> tuple[list[Made], RunReport]:
    """Write augmented copies of recordings.

    The files are DIRECTORY/audio/PREFIXNAME.flac, with 16 bits.  If the directory has copies of an earlier run with the
    same recordings and settings, whole ones are kept, so that an interrupted run continues; others are replaced.

    Parameters
    ----------
    recordings : sequence of Recording
        With different names.
    settings : Augmentation
    directory : path
    workers : int, optional
        Number of threads, default one per core.
    progress : callable, optional
        Called as progress(done, total) when recordings are finished.
    runner : Runner, optional
        Used instead of threads; its workers must have access to the files.

    Returns
    -------
    made : list of Made
        In the order of the recordings.
    report : RunReport
        Copies that could not be made are failures; the others are made.

    Raises
    ------
    FormatError
        If a recording has the name of a copy of another one.
    OSError
        If a file cannot be written, or a copy would overwrite an input.
    """
    directory = Path(directory)
    plan = list(settings.plan())
    _refuse_collisions(recordings, settings, plan, directory)
    record = describe(recordings, settings)
    if not _is_recorded(directory / RECORD, record):
        for recording in recordings:
            for copy in plan:
                _file(directory, copy, recording).unlink(missing_ok=True)
        write_json(directory / RECORD, record, indent=1)
    used = runner or thread_runner(workers)
    report = RunReport("copies")
    copies = []
    try:
        results = used.each(make_copies, recordings, plan, settings, directory)
        for number, (recording, outcome) in enumerate(results, 1):
            if isinstance(outcome, ShardLost):
                outcome = Outcome(losses=[(copy.prefix + recording.name, str(outcome)) for copy in plan])
            elif isinstance(outcome, Exception):
                raise outcome
            copies += outcome.made
            report.done(len(outcome.made))
            for name, reason in outcome.losses:
                report.fail(name, reason)
            if progress:
                progress(number, len(recordings))
    finally:
        if not runner:
            used.close()
    return copies, report


def _refuse_collisions(
    recordings: Sequence[Recording], settings: Augmentation, plan: list[Copy], directory: Path
) -> None:
    """Raise FormatError for a copy with the name of a recording, and FileExistsError for one in place of an input."""
    names = {recording.name for recording in recordings}
    inputs = (*recordings, *settings.noises, *settings.foreground, *settings.talkers, *settings.responses)
    parents = {recording.path.parent for recording in inputs}
    audio_directory = os.path.realpath(directory / "audio")
    parents_there = {parent for parent in parents if os.path.realpath(parent) == audio_directory}
    input_names = {recording.path.name for recording in inputs if recording.path.parent in parents_there}
    for recording in recordings:
        for copy in plan:
            name = copy.prefix + recording.name
            if name in names:
                raise FormatError(
                    f"{name}: a recording and a copy of {recording.name} have this name; "
                    "expected a source without such copies"
                )
            if (path := _file(directory, copy, recording)).name in input_names:
                raise FileExistsError(
                    errno.EEXIST, "is an input and would be overwritten; expected another directory", os.fspath(path)
                )


def make_copies(
    recordings: Sequence[Recording], plan: list[Copy], settings: Augmentation, directory: Path
) -> list[Outcome]:
    """Make the missing copies of recordings; a worker keeps the noises that it has read for the next ones."""
    maker = kept(CopyMaker, settings)
    return [_copies_of(recording, plan, maker, directory) for recording in recordings]


def _copies_of(recording: Recording, plan: list[Copy], maker: CopyMaker, directory: Path) -> Outcome:
    """Make the missing copies of one recording.  Only a failure to write raises an error."""
    outcome = Outcome()
    files = {copy: _file(directory, copy, recording) for copy in plan}
    lengths = {copy: _length(path) for copy, path in files.items()}
    try:
        samples, length, rate = _opened(recording, needed=None in lengths.values())
    except (ArgonautError, OSError) as fault:
        outcome.losses = [(copy.prefix + recording.name, _reason(fault)) for copy in plan]
        return outcome
    for copy, path in files.items():
        name = copy.prefix + recording.name
        new_length = lengths[copy]
        if new_length is None:
            assert samples is not None
            try:
                augmented = maker.make(copy, recording, samples, rate)
            except (ArgonautError, OSError) as fault:
                outcome.losses.append((name, _reason(fault)))
                continue
            write_flac(path, augmented, rate)
            new_length = len(augmented)
        outcome.made.append(Made(recording, copy, name, path, rate, (length, new_length)))
    return outcome


def _length(path: Path) -> int | None:
    """Return the number of samples of a copy; None for one that is missing, or does not end as its header says."""
    notes: list[str] = []
    try:
        length = read_audio_header(path).num_samples
        read_audio(path, first=length - 1, notes=notes)
    except (ArgonautError, OSError):
        return None
    return None if notes else length


def _opened(recording: Recording, needed: bool) -> tuple[Float32Array | None, int, int]:
    """Return the samples of a recording, None unless they are needed, their number and their rate in Hz."""
    if needed:
        samples, rate = load(recording)
        return samples, len(samples), rate
    header = read_audio_header(recording.path)
    length = header.num_samples if recording.last is None else recording.last + 1 - (recording.first or 0)
    return None, length, header.rate


def _reason(fault: Exception) -> str:
    if isinstance(fault, OSError) and fault.filename:
        return f"{fault.filename}: {os_reason(fault)}"
    return str(fault)


def _file(directory: Path, copy: Copy, recording: Recording) -> Path:
    return directory / "audio" / f"{copy.prefix}{recording.name}.flac"


def describe(recordings: Sequence[Recording], settings: Augmentation) -> dict[str, Any]:
    """Return what determines the copies: the settings, and a digest of the files with their sizes and times."""
    values = asdict(settings)
    lists = {"recordings": [asdict(recording) for recording in recordings]}
    for name in ("noises", "foreground", "talkers", "responses"):
        lists[name] = values.pop(name)
    stamps: dict[str, object] = {}
    for file in (item for items in lists.values() for item in items):
        file["path"] = os.path.abspath(file["path"])  # noqa: PTH100  (links are not followed)
        if file["path"] not in stamps:
            with contextlib.suppress(OSError):
                status = os.stat(file["path"])  # noqa: PTH116
                stamps[file["path"]] = (status.st_size, status.st_mtime_ns)
    text = json.dumps([lists, sorted(stamps.items())])
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    counts = {name: len(items) for name, items in lists.items()}
    return json.loads(json.dumps({"settings": values, "files": counts, "digest": digest}))


def _is_recorded(path: Path, record: dict[str, Any]) -> bool:
    """Whether an earlier run has left this record."""
    try:
        return json.loads(path.read_text(encoding="utf-8")) == record
    except (OSError, ValueError):
        return False
