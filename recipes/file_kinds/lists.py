"""Figures of lists of files and of names."""

from collections import Counter
from pathlib import Path

from readers.audio.header import AudioHeader, read_audio_header
from readers.audio.parts import audio_part
from readers.common.report import Figures, missing, num_files
from readers.errors import FormatError
from readers.htk.parameter_file import kind_name, read_htk_header
from readers.htk.scp import read_list, read_pairs, read_scp


def scp(path: str) -> Figures:
    entries = read_scp(path, channels=True)
    keys = Counter(entry.key for entry in entries)
    frames = [entry.num_frames for entry in entries if entry.num_frames is not None]
    audio = _audio(entries[0].path)
    figures: Figures = [
        ("entries", len(entries)),
        ("files", num_files(entry.path for entry in entries)),
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


def _audio(path: str) -> AudioHeader | None:
    """Return the header of a file, None if it is no audio."""
    try:
        return read_audio_header(path)
    except (FormatError, OSError):
        return None


def names(path: str) -> Figures:
    entries = read_list(path)
    return [("names", f"{len(entries)}, {len(set(entries))} different"), ("first", entries[0]), ("last", entries[-1])]


def pairs(path: str) -> Figures:
    pairs = read_pairs(path)
    num_targets = sum(Path(target).is_file() for _, target in pairs)
    return [
        ("entries", len(pairs)),
        ("sources", f"{len({source for source, _ in pairs})}{missing(audio_part(source).path for source, _ in pairs)}"),
        ("targets", f"{len({target for _, target in pairs})}, {num_targets} of them there"),
        ("first", f"{pairs[0][0]} to {pairs[0][1]}"),
    ]
