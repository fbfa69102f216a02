"""Kaldi's data directories: wav.scp, segments, text, utt2spk, spk2utt and reco2file_and_channel, plain or gzip.

Every table has a key in each line, in the order of `LC_ALL=C sort`, each key once.  Commands are never run.  Audio in
archives, of which wav.scp gives the places, or in wav.ark without wav.scp, is stored in WAV files.  A line of wav.scp
may also name a part of a file, and a channel, as our lists do: `PATH[first,last,channel]`, in samples counted from 0.
Source: Kaldi's documentation, "Data preparation", and its program extract-segments.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from readers.audio.parts import AudioPart, audio_part
from readers.common.files import write_content
from readers.common.report import RunReport
from readers.common.text import canonical, is_count, is_number, read_lines, to_number
from readers.corpora.corpus import AudioHeaders, usable_name
from readers.corpora.corpus_builder import MAX_OVERSHOOT, Draft, audio_path, from_zero, reason
from readers.corpora.pipes import way_without
from readers.errors import FormatError
from readers.kaldi.audio_archive import read_wav_archive, read_wav_at

CHANNELS = {"A": 0, "B": 1, "1": 0, "2": 1}
_OFFSET = re.compile(r"(.+):([0-9]{1,18})")


class Row(NamedTuple):
    """A line of a table: its place, and the text after the key."""

    where: str
    value: str


class Recording(NamedTuple):
    """A recording: its place, its file, its offset if that is an archive, and the part if the line names one."""

    where: str
    path: Path
    offset: int | None = None
    part: AudioPart | None = None


class Segment(NamedTuple):
    """A line of segments; end None for the end of the recording."""

    recording: str
    start: float = 0.0
    end: float | None = None
    channel: int | None = None


def kaldi_drafts(source: Path, report: RunReport, store: Path | None = None) -> Iterator[Draft]:
    """Yield the utterances of a Kaldi data directory; lines of `text` without audio are listed in the report.

    store: directory for the WAV files of audio in archives.
    Raises FormatError, with file and line, and OSError.
    """
    source = Path(os.path.abspath(source))  # noqa: PTH100  (links stay links)
    if not source.is_dir():
        source.stat()
        raise FormatError(f"{source}: a file; expected a Kaldi data directory, with wav.scp, text and utt2spk")
    archive = None if _find(source, "wav.scp") else _find(source, "wav.ark")
    if archive:
        recordings = dict(_stored_archive(archive, store))
    else:
        recordings = {key: _recording(key, row, source) for key, row in _required(source, "wav.scp").items()}
    channels = _channels(source)
    segments = _segments(source, recordings)
    speakers = _speakers(source, segments)
    texts = _table(source, "text") or {}
    files: dict[str, Path] = {}
    headers = AudioHeaders()
    for key, (where, segment) in segments.items():
        recording = segment.recording
        try:
            if recording not in files:
                files[recording] = _file(recording, recordings[recording], store)
            segment = _of_part(segment, recordings[recording].part, files[recording], headers)
        except (FormatError, OSError) as fault:
            report.fail(key, reason(fault))
            continue
        text = texts[key].value if key in texts else None
        yield Draft(
            *(where, key, speakers[key], text, files[recording]),
            *(segment.start, segment.end, segment.channel, channels.get(recording), recording),
        )
    for key, row in texts.items():
        if key not in segments:
            report.skip(key, f"{row.where}: a transcript without audio; expected it in segments or wav.scp")


def _find(source: Path, name: str) -> Path | None:
    """Return the path of a table, which may be gzip; None if it is missing."""
    return next((path for path in (source / name, source / f"{name}.gz") if os.path.lexists(path)), None)


def _table(source: Path, name: str) -> dict[str, Row] | None:
    """Return the lines of a table by key, None without the table.  Raises FormatError."""
    path = _find(source, name)
    if path is None:
        return None
    rows: dict[str, Row] = {}
    previous = ""
    for number, line in enumerate(read_lines(path, exact=True), 1):
        key, *values = line.split(None, 1)[:2] or [""]
        where = f"{path}:{number}"
        if not key:
            raise FormatError(f"{where}: an empty line; expected a key on each line")
        if canonical(key) in rows:
            raise FormatError(f"{where}: {key!r} is already at {rows[canonical(key)].where}; expected each key once")
        if key < previous:
            raise FormatError(
                f"{where}: {key!r} after {previous!r}; expected the keys in order; sort the file with LC_ALL=C sort"
            )
        value = values[0].strip() if values else ""
        rows[canonical(key)] = Row(where, value if name == "wav.scp" else canonical(value))
        previous = key
    return rows


def _required(source: Path, name: str) -> dict[str, Row]:
    rows = _table(source, name)
    if not rows:
        problem = "missing" if rows is None else "empty"
        raise FormatError(
            f"{source / name}: {problem}; expected a Kaldi data directory, with wav.scp, text and utt2spk"
        )
    return rows


def _recording(key: str, row: Row, source: Path) -> Recording:
    """Return the recording of a line of wav.scp."""
    if row.value.endswith("|") or row.value.startswith("|"):
        raise FormatError(
            f"{row.where}: a command, which is not run; expected an audio file; {way_without(row.value, key, source)} "
            "(WAV, FLAC, MP3, Ogg and uncompressed SPHERE are read directly)"
        )
    path = audio_path(row.value, source, row.where, also_here=True)
    if os.path.lexists(path):
        return Recording(row.where, path)
    match = _OFFSET.fullmatch(row.value)
    part = audio_part(row.value)
    name = match[1] if match else part.path
    return Recording(
        row.where, audio_path(name, source, row.where, also_here=True), int(match[2]) if match else None, part
    )


def _file(key: str, recording: Recording, store: Path | None) -> Path:
    """Return the file of a recording; one in an archive is stored first."""
    if recording.offset is None:
        return recording.path
    return _store(key, read_wav_at(recording.path, recording.offset), store, recording.where)


def _of_part(segment: Segment, part: AudioPart | None, path: Path, headers: AudioHeaders) -> Segment:
    """Return a segment of a recording, which is a part of a file, as a segment of the file."""
    if part is None or part.last is None:
        return segment
    rate = headers[path].rate
    begin = part.first / rate
    stop = (part.last + 1) / rate
    end = stop if segment.end is None else begin + segment.end
    if begin + segment.start >= stop or end > stop + MAX_OVERSHOOT:
        raise FormatError(
            f"{path}: from {segment.start:g} to {end - begin:g} s of the part {part.first} to {part.last}, which has "
            f"{stop - begin:g} s; expected a part of it"
        )
    channel = part.channel if segment.channel is None else segment.channel
    return segment._replace(start=begin + segment.start, end=min(end, stop), channel=channel)


def _stored_archive(archive: Path, store: Path | None) -> Iterator[tuple[str, Recording]]:
    """Store all recordings of an archive; yield them with their keys."""
    for key, content in read_wav_archive(archive):
        where = f"{archive}: {key}"
        yield key, Recording(where, _store(key, content, store, where))


def _store(key: str, content: bytes, store: Path | None, where: str) -> Path:
    if store is None:
        raise FormatError(f"{where}: audio in an archive; expected audio files; argonaut import stores it in files")
    path = Path(os.path.abspath(store / f"{usable_name(key, where)}.wav"))  # noqa: PTH100
    write_content(path, content)
    return path


def _segments(source: Path, recordings: dict[str, Recording]) -> dict[str, tuple[str, Segment]]:
    """Return (place, segment) of each utterance; without segments, recordings are utterances."""
    rows = _table(source, "segments")
    if rows is None:
        return {key: (recording.where, Segment(key)) for key, recording in recordings.items()}
    segments = {}
    for key, (where, value) in rows.items():
        fields = value.split()
        numbers = [to_number(field) for field in fields[1:3] if is_number(field)]
        if len(fields) not in (3, 4) or len(numbers) != 2 or not all(is_count(field) for field in fields[3:]):
            raise FormatError(f"{where}: {value[:60]!r}; expected `utterance recording start end`, times in seconds")
        if fields[0] not in recordings:
            raise FormatError(f"{where}: recording {fields[0]!r} is not in wav.scp; expected one that is")
        start, end = from_zero(numbers[0]), numbers[1]
        if start < 0 or (end != -1 and end <= start):
            raise FormatError(f"{where}: from {fields[1]} to {fields[2]} s; expected times from 0, the start first")
        channel = int(fields[3]) if len(fields) == 4 else None
        segments[key] = (where, Segment(fields[0], start, None if end == -1 else end, channel))
    return segments


def _speakers(source: Path, segments: dict[str, tuple[str, Segment]]) -> dict[str, str]:
    """Return the speaker of each utterance, from utt2spk or, without it, spk2utt."""
    rows = _table(source, "utt2spk")
    lists = _table(source, "spk2utt")
    if rows is None and lists is None:
        raise FormatError(f"{source / 'utt2spk'}: missing; expected the speaker of each utterance")
    by_list: dict[str, tuple[str, str]] = {}
    for speaker, row in (lists or {}).items():
        for utterance in row.value.split():
            if utterance in by_list:
                raise FormatError(
                    f"{row.where}: {utterance!r} is already at {by_list[utterance][1]}; expected each utterance once"
                )
            if rows is not None and utterance not in rows:
                raise FormatError(f"{row.where}: {utterance!r} is not in utt2spk; expected the same utterances in both")
            by_list[utterance] = (speaker, row.where)
    if rows is None:
        speakers = {utterance: speaker for utterance, (speaker, _) in by_list.items()}
    else:
        speakers = {}
        for key, (where, value) in rows.items():
            if len(value.split()) != 1:
                raise FormatError(f"{where}: speaker {value[:60]!r}; expected `utterance speaker`")
            speakers[key] = value
            if lists is not None and by_list.get(key, ("",))[0] != value:
                where_listed = by_list[key][1] if key in by_list else source / "spk2utt"
                raise FormatError(
                    f"{where}: {key!r} is of speaker {value!r}, but not in {where_listed}; expected the same in both"
                )
    for key, (where, _) in segments.items():
        if key not in speakers:
            raise FormatError(f"{where}: {key!r} is not in utt2spk; expected its speaker there")
    return speakers


def _channels(source: Path) -> dict[str, int]:
    """Return the channel of each recording that reco2file_and_channel names."""
    channels = {}
    for key, (where, value) in (_table(source, "reco2file_and_channel") or {}).items():
        fields = value.split()
        if len(fields) != 2 or fields[1] not in CHANNELS:
            raise FormatError(f"{where}: {value[:60]!r}; expected `recording file channel`, with channel A, B, 1 or 2")
        channels[key] = CHANNELS[fields[1]]
    return channels
