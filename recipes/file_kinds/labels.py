"""Figures of label files, lists of files and lists of names."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from readers.errors import FormatError
from readers.htk.mlf import read_mlf
from recipes.file_kinds.figures import Figures, seconds

if TYPE_CHECKING:
    from readers.audio.header import AudioHeader


def mlf(path: str) -> Figures:
    mlf = read_mlf(path)
    labels = [label for entry in mlf.values() for label in entry]
    names = Counter(label.name for label in labels)
    ends = [entry[-1].end for entry in mlf.values() if entry and entry[-1].end is not None]
    levels = 1 + max((len(label.aux) for label in labels), default=0)
    figures: Figures = [
        ("entries", f"{len(mlf)}" + (f" and {len(mlf.patterns)} patterns" if mlf.patterns else "")),
        ("labels", f"{len(labels)}, {len(names)} different"),
        ("levels", levels),
        ("times", f"{seconds(sum(ends))} in {len(ends)} entries" if ends else "none"),
        ("scores", "yes" if any(label.score is not None for label in labels) else "no"),
        ("frequent", ", ".join(f"{name} {count}" for name, count in names.most_common(5))),
    ]
    empty = sum(not entry for entry in mlf.values())
    return figures + ([("empty", f"{empty} entries without labels")] if empty else [])


def segments(path: str) -> Figures:
    from readers.tables.timit import read_segments

    segments = read_segments(path)
    return [("segments", len(segments)), ("ends at", f"sample {max(segment.end for segment in segments)}")]


def scp(path: str) -> Figures:
    from readers.htk.parameter_file import kind_name, read_htk_header
    from readers.htk.scp import read_scp

    entries = read_scp(path, channels=True)
    files = {entry.path for entry in entries}
    missing = sum(not Path(file).is_file() for file in files)
    keys = Counter(entry.key for entry in entries)
    frames = [entry.num_frames for entry in entries if entry.num_frames is not None]
    audio = _audio(entries[0].path)
    figures: Figures = [
        ("entries", len(entries)),
        ("files", f"{len(files)}" + (f", {missing} of them not there" if missing else "")),
        (
            "ranges",
            f"{len(frames)} entries give one, {sum(frames)} {'samples' if audio else 'frames'}" if frames else "none",
        ),
        ("first key", entries[0].key),
    ]
    repeated = sum(count > 1 for count in keys.values())
    if repeated:
        figures.append(("repeated", f"{repeated} keys come more than once"))
    if audio:
        channels = f", {audio.channels} channels" if audio.channels > 1 else ""
        figures.append(("first file", f"audio, {audio.rate} Hz{channels}"))
    elif Path(entries[0].path).is_file():
        try:
            header = read_htk_header(entries[0].path)
            figures.append(("first file", f"{kind_name(header.kind)}, {header.dim} values per frame"))
        except FormatError:
            figures.append(("first file", "no HTK parameter file"))
    return figures


def _audio(path: str) -> "AudioHeader | None":
    """Return the header of a file, None if it is no audio."""
    from readers.audio.header import read_audio_header

    try:
        return read_audio_header(path)
    except (FormatError, OSError):
        return None


def names(path: str) -> Figures:
    from readers.htk.scp import read_list

    entries = read_list(path)
    return [("names", f"{len(entries)}, {len(set(entries))} different"), ("first", entries[0]), ("last", entries[-1])]


def transcripts(path: str) -> Figures:
    from readers.results.trn import read_trn

    transcripts = read_trn(path)
    words = Counter(word for entry in transcripts.values() for word in entry)
    return [("utterances", len(transcripts)), ("words", f"{sum(words.values())}, {len(words)} different")]
