"""Manifests of lhotse: recordings and supervisions, a JSON object on each line, plain or gzip.

Files are called recordings.jsonl.gz and supervisions.jsonl.gz, usually with a prefix and the name of a part of the
corpus, as in librispeech_recordings_dev-clean.jsonl.gz.  Audio must be in files: commands are not run, and nothing is
downloaded.
Source: lhotse's documentation, "Representing a corpus".
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from readers.common.report import RunReport
from readers.common.text import read_lines
from readers.corpora.corpus_builder import Draft, audio_path
from readers.corpora.json_lines import json_objects
from readers.errors import FormatError

ENDINGS = (".jsonl", ".jsonl.gz")
LARGEST = 1e9  # of a number
_CUTS = "`lhotse cut decompose CUTS DIR` makes it from cuts"


class Recording(NamedTuple):
    """A recording; files: the path and position of each of its channels; where: the line that describes it."""

    where: str
    files: dict[int, tuple[Path, int]]


def lhotse_drafts(source: Path, report: RunReport) -> Iterator[Draft]:
    """Yield the utterances of a pair of manifests.  Recordings without supervisions are listed in the report.

    source: the directory, or the manifest of supervisions if there are several.
    Raises FormatError, with file and line, and OSError.
    """
    recordings_path, supervisions_path = _pair(source)
    recordings = {
        identity: Recording(where, _files(item, where, recordings_path.parent))
        for identity, where, item in _objects(recordings_path)
    }
    used = set()
    for identity, where, item in _objects(supervisions_path):
        recording_id = _text(item, "recording_id", where)
        if recording_id not in recordings:
            raise FormatError(
                f"{where}: recording {recording_id[:60]!r} is not in {recordings_path}; expected one of it"
            )
        used.add(recording_id)
        start = _number(item, "start", where)
        duration = _number(item, "duration", where)
        location = _place(item, where, recordings[recording_id])
        if location is None:
            report.fail(identity, f"{where}: channels in different files; expected channels of one file")
            continue
        path, side = location
        files = [file for file, _ in recordings[recording_id].files.values()]
        yield Draft(
            where,
            identity,
            _text(item, "speaker", where, recording_id),
            _text(item, "text", where, None),
            path,
            start,
            start + duration,
            side=side,
            recording=recording_id if len(set(files)) == 1 else "",
        )
    for identity, recording in recordings.items():
        if identity not in used:
            report.skip(identity, f"{recording.where}: a recording without a supervision; expected one or more")


def _pair(source: Path) -> tuple[Path, Path]:
    """Return the manifests of recordings and supervisions."""
    source = Path(os.path.abspath(source))  # noqa: PTH100  (links stay links)
    if source.is_dir():
        manifests = sorted(
            path for path in source.iterdir() if path.name.endswith(ENDINGS) and "supervisions" in path.name
        )
        if len(manifests) != 1:
            names = f": {', '.join(path.name for path in manifests[:3])}" if manifests else ""
            way = "name one of them instead of the directory" if manifests else _CUTS
            raise FormatError(
                f"{source}: {len(manifests)} manifests of supervisions{names}; expected one, such as "
                f"supervisions.jsonl.gz; {way}"
            )
        supervisions = manifests[0]
    else:
        source.stat()
        supervisions = source
        if "supervisions" not in source.name or not source.name.endswith(ENDINGS):
            raise FormatError(f"{source}: expected a manifest of supervisions, such as supervisions.jsonl.gz; {_CUTS}")
    name = supervisions.name.replace("supervisions", "recordings")
    base = name.removesuffix(".gz")
    recordings = next(
        (candidate for candidate in (base, f"{base}.gz") if (supervisions.parent / candidate).exists()), None
    )
    if recordings is None:
        raise FormatError(f"{supervisions.parent / name}: missing; expected the recordings of {supervisions.name}")
    return supervisions.parent / recordings, supervisions


def _objects(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (id, place, object) of each line.  Raises FormatError for other lines, and a repeated id."""
    places: dict[str, str] = {}
    for where, item in json_objects(read_lines(path, exact=True), path):
        identity = _text(item, "id", where)
        if identity in places:
            raise FormatError(f"{where}: id {identity[:60]!r} is already at {places[identity]}; expected each id once")
        places[identity] = where
        yield identity, where, item


def _files(item: dict[str, Any], where: str, base: Path) -> dict[int, tuple[Path, int]]:
    """Return the file of each channel of a recording, and its position in the file."""
    if item.get("transforms"):
        raise FormatError(f"{where}: a recording with transforms; expected audio as it is; save it with lhotse first")
    sources = item.get("sources")
    if not isinstance(sources, list) or not sources or not all(isinstance(entry, dict) for entry in sources):
        raise FormatError(f"{where}: no list of sources; expected one of type file")
    files: dict[int, tuple[Path, int]] = {}
    for source in sources:
        kind = source.get("type")
        if kind != "file":
            way = "is not run" if kind == "command" else "is not downloaded" if kind == "url" else "is not supported"
            raise FormatError(
                f"{where}: a source of type {str(kind)[:40]!r}, which {way}; expected type file; store the audio so"
            )
        channels = source.get("channels")
        if not isinstance(channels, list) or not channels or not all(type(channel) is int for channel in channels):
            raise FormatError(f"{where}: channels {channels!r:.40}; expected a list of numbers")
        path = audio_path(_text(source, "source", where), base, where, also_here=True)
        files.update((channel, (path, position)) for position, channel in enumerate(channels))
    return files


def _place(item: dict[str, Any], where: str, recording: Recording) -> tuple[Path, int | None] | None:
    """Return the file of a supervision and the channel in it, None for all its channels; None for several files."""
    channel = item.get("channel", item.get("channel_id", 0))
    channels = channel if isinstance(channel, list) else [channel]
    if not channels or any(type(number) is not int or number not in recording.files for number in channels):
        expected = ", ".join(map(str, sorted(recording.files)))
        raise FormatError(f"{where}: channel {channel!r:.40}; expected one of the recording: {expected}")
    if len({recording.files[number][0] for number in channels}) > 1:
        return None
    path, position = recording.files[channels[0]]
    return path, position if len(channels) == 1 else None


def _text(item: dict[str, Any], name: str, where: str, *default: str | None) -> Any:
    value = item.get(name)
    if value is None and default:
        return default[0]
    if not isinstance(value, str):
        raise FormatError(f"{where}: {name} {value!r:.40}; expected a text")
    return value


def _number(item: dict[str, Any], name: str, where: str) -> float:
    value = item.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < LARGEST:
        raise FormatError(f"{where}: {name} {value!r:.40}; expected a number of seconds")
    return float(value)
