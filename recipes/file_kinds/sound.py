"""Figures of feature and audio files."""

from pathlib import Path

from readers.common.report import Figures, all_finite
from readers.config.side_files import SideFiles, side_file
from readers.errors import FormatError
from readers.htk.units import seconds


def features(path: str) -> Figures:
    import numpy as np

    from readers.htk.parameter_file import HAS_C, HAS_K, kind_name, read_htk, read_htk_header

    header = read_htk_header(path)
    record = SideFiles().record(path, kind_name(header.kind), header.period)
    is_described = len(record.settings) > 2  # more than the header tells
    frames = read_htk(path).frames
    with np.errstate(over="ignore", invalid="ignore"):  # a note below says so
        mean = frames.mean(dtype="f8")
    duration = seconds(header.num_frames * header.period)
    figures: Figures = [
        ("kind", kind_name(header.kind)),
        ("frames", f"{header.num_frames} ({duration}, one every {header.period / 1e4:g} ms)"),
        ("values", f"{header.dim} per frame" + (", compressed to 16 bits" if header.kind & HAS_C else "")),
        ("byte order", "big-endian" if header.byte_order == ">" else "little-endian"),
        ("range", f"{frames.min():g} to {frames.max():g}, mean {mean:g}"),
        *([("computed with", f"{', '.join(record.texts())} ({side_file(path).name})")] if is_described else []),
    ]
    if header.kind & HAS_K:
        try:
            read_htk(path, verify=True)
            figures.append(("checksum", "agrees with the data"))
        except FormatError as fault:
            figures.append(("checksum", f"DOES NOT AGREE: {str(fault).removeprefix(f'{path}: ')}"))
    if not all_finite(frames):
        figures.append(("note", "some values are infinite or not numbers"))
    return figures


def audio(path: str) -> Figures:
    from readers.audio.audio_file import read_audio
    from readers.common.audio_format import HEAD_SIZE, audio_format

    notes: list[str] = []
    samples, rate = read_audio(path, notes=notes)
    with Path(path).open("rb") as file:
        form = audio_format(file.read(HEAD_SIZE))
    return [
        ("format", form or "HTK waveform"),
        ("samples", f"{len(samples)} ({len(samples) / rate:.2f} s)"),
        ("rate", f"{rate} Hz"),
        ("range", f"{samples.min():g} to {samples.max():g} of 16 bits"),
        *(("note", note) for note in notes),
    ]
