"""Audio in blocks, from a long file or a pipe, such as the output of a microphone program.

A pipe transports samples with a WAV header, which contains the sampling rate, or raw samples, at a rate and in an
encoding given by the user.  Files may have any format of `read_audio`; audio of other formats in a pipe is stored in a
temporary file first.
"""

import contextlib
import os
import shutil
import stat
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from readers.audio.audio_file import Channel, audio_name, choose_channel, is_htk_waveform, read_audio
from readers.audio.data_size import NO_LENGTH, UNKNOWN_LENGTH, skipped_bytes, too_few
from readers.audio.raw import PCM_16, RawFormat
from readers.audio.sound import Sound
from readers.common.audio_format import HEAD_SIZE, audio_format
from readers.common.temporary import scratch_directory
from readers.errors import ConfigError, FormatError

EXTENSIBLE = 0xFFFE  # format tag of WAV; the tag itself follows in an extension
# Encodings of WAV in a pipe, by format tag and bits per sample.
WAV_ENCODINGS = {
    (1, 8): "u8", (1, 16): PCM_16, (1, 24): "s24le", (1, 32): "s32le", (3, 32): "f32le", (6, 8): "alaw",
    (7, 8): "mulaw",
}  # fmt: skip
MAX_HEADER = 1 << 20
STANDARD_INPUT = "-"
MAGIC_SIZE = 4  # bytes that tell audio with a header from raw samples, except MPEG audio


class AudioStream(NamedTuple):
    """Audio in blocks.

    Attributes
    ----------
    rate : int
        Samples per second.
    blocks : iterator of (n,) float32
        Samples on the scale of 16-bit integers, n > 0.
    num_samples : int or None
        How many there are, as the header says; None if that is unknown.
    notes : list of str
        What is unusual about the audio, such as an end before that of the header; complete after the last block.
    """

    rate: int
    blocks: Iterator[npt.NDArray[np.float32]]
    num_samples: int | None
    notes: list[str]


def open_audio(
    path: str | Path | BinaryIO,
    block: int,
    rate: int | None = None,
    encoding: str = PCM_16,
    channels: int = 1,
    channel: Channel = None,
) -> AudioStream:
    """Open audio for reading in blocks.

    Parameters
    ----------
    path : path
        File, named pipe, `-` for standard input, or a file that is open for reading in binary mode, such as BytesIO.
    block : int
        Samples per block; a pipe may return fewer.
    rate : int, optional
        Sampling rate of raw samples, in Hz.
    encoding : str
        Encoding of raw samples, a key of `readers.audio.raw.ENCODINGS`.
    channels : int
        Number of channels of raw samples.
    channel : int or "mix", optional
        Channel to read, counted from 0, or the mean of all; required if there are several.

    Returns
    -------
    AudioStream
        Its iterator raises FormatError if the audio is damaged, or raw samples end within a sample.

    Raises
    ------
    FormatError
        For an unknown format, several channels without a choice, and a missing channel.
    ConfigError
        For raw samples without a rate, an unknown encoding, a rate that differs from that of the file, and a file that
        is open as text.
    """
    raw = None if rate is None else RawFormat(rate, encoding, channels)
    if raw is not None:
        raw.check()
    if not isinstance(path, (str, os.PathLike)):
        where = audio_name(path)
        if not isinstance(path.read(0), bytes):
            raise ConfigError(f"{where}: open as text; expected a file that is open in binary mode")
        audio = _from_pipe(path, where, block, raw)
    elif os.fspath(path) == STANDARD_INPUT:
        if sys.stdin.buffer.isatty():
            raise ConfigError("standard input: a terminal; expected audio from a pipe, for instance from arecord")
        where = "standard input"
        audio = _from_pipe(sys.stdin.buffer, "standard input", block, raw)
    elif not stat.S_ISREG(Path(path).stat().st_mode):
        file = Path(path).open("rb")  # noqa: SIM115  (the iterator of blocks closes it)
        where = os.fspath(path)
        audio = _from_pipe(file, os.fspath(path), block, raw)
    else:
        where = os.fspath(path)
        audio = _from_file(path, block, raw)
    if rate is not None and audio.rate != rate:
        raise ConfigError(f"{where}: {audio.rate} samples per second; expected {rate}, as requested")
    choose_channel(np.zeros((0, audio.channels), np.float32), channel, where)
    blocks = (choose_channel(samples, channel, where) for samples in audio.blocks)
    return AudioStream(audio.rate, blocks, audio.num_samples, audio.notes)


class _Channels(NamedTuple):
    """Audio of all channels; the blocks are (n, channels) float32."""

    rate: int
    channels: int
    blocks: Iterator[npt.NDArray[np.float32]]
    num_samples: int | None
    notes: list[str]


def _from_file(path: str | Path, block: int, raw: RawFormat | None) -> _Channels:
    with Path(path).open("rb") as file:
        head = file.read(HEAD_SIZE)
    form = audio_format(head)
    if form is None:
        if raw is not None and head and not is_htk_waveform(path):
            blocks = _raw_file_blocks(path, block, raw)
            return _Channels(raw.rate, raw.channels, blocks, Path(path).stat().st_size // raw.width, [])
        samples, rate = read_audio(path)
        blocks = iter([samples[i : i + block, None] for i in range(0, len(samples), block)])
        return _Channels(rate, 1, blocks, len(samples), [])
    sound = Sound(path, form)
    return _Channels(sound.rate, sound.channels, sound.blocks(block), sound.num_samples, sound.notes)


def _from_pipe(file: BinaryIO, where: str, block: int, raw: RawFormat | None) -> _Channels:
    begin = _read_exactly(file, MAGIC_SIZE)
    if not begin:
        raise FormatError(f"{where}: empty; expected audio")
    notes: list[str] = []
    if begin == b"RIFF":
        form, length = _read_wav_header(file, where)
        blocks = _raw_blocks(file, where, block, b"", form, length, notes)
        return _Channels(form.rate, form.channels, blocks, None, notes)
    if raw is None and not audio_format(begin):
        begin += _read_exactly(file, HEAD_SIZE - MAGIC_SIZE)
    if audio_format(begin):
        return _from_copy(file, where, block, begin)
    if raw is None:
        raise ConfigError(f"{where}: raw samples; expected audio with a header, or the option rate")
    return _Channels(raw.rate, raw.channels, _raw_blocks(file, where, block, begin, raw), None, notes)


def _from_copy(pipe: BinaryIO, where: str, block: int, begin: bytes) -> _Channels:
    """Open audio that libsndfile cannot read from a pipe: a temporary file is read when the pipe has ended."""
    stack = contextlib.ExitStack()
    path = os.fspath(stack.enter_context(scratch_directory()) / "audio")

    def blocks(found: Iterator[npt.NDArray[np.float32]]) -> Iterator[npt.NDArray[np.float32]]:
        with stack:
            try:
                yield from found
            except FormatError as fault:
                raise FormatError(str(fault).replace(path, where)) from fault

    try:
        with Path(path).open("wb") as file:
            file.write(begin)
            shutil.copyfileobj(pipe, file)
        audio = _from_file(path, block, None)
        if NO_LENGTH in audio.notes:  # usual in a pipe
            audio.notes.remove(NO_LENGTH)
    except BaseException as fault:
        stack.close()
        if isinstance(fault, FormatError):
            raise FormatError(str(fault).replace(path, where)) from fault
        raise
    return audio._replace(blocks=blocks(audio.blocks))


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    """Read `size` bytes, or fewer at the end of the file."""
    data = b""
    while len(data) < size:
        more = file.read(size - len(data))
        if not more:
            break
        data += more
    return data


def _read_wav_header(file: BinaryIO, where: str) -> tuple[RawFormat, int | None]:
    """Return (format, bytes of samples or None if unknown); leaves the file positioned at the first sample."""
    kind = _read_exactly(file, 8)[4:]
    form = None
    done = 0
    while kind == b"WAVE" and done < MAX_HEADER:
        head = _read_exactly(file, 8)
        if len(head) < 8:
            break
        name = head[:4]
        length = struct.unpack("<I", head[4:])[0]
        if name == b"data":
            if form is None:
                break
            return form, None if length == 0 or length >= UNKNOWN_LENGTH else length
        done += length
        if done > MAX_HEADER:
            break
        content = _read_exactly(file, length + length % 2)
        if name == b"fmt ":
            form = _parse_format(content, where)
    raise FormatError(f"{where}: no WAV header; expected RIFF, WAVE, a chunk fmt and a chunk data")


def _parse_format(content: bytes, where: str) -> RawFormat:
    if len(content) < 16:
        raise FormatError(f"{where}: format of {len(content)} bytes in the WAV header; expected at least 16")
    tag, channels, rate, _, width, bits = struct.unpack("<HHIIHH", content[:16])
    if tag == EXTENSIBLE and len(content) >= 26:
        tag = struct.unpack("<H", content[24:26])[0]
    encoding = WAV_ENCODINGS.get((tag, bits))
    if encoding is None or rate < 1 or channels < 1 or width != channels * bits // 8:
        raise FormatError(
            f"{where}: WAV of format {tag}, {channels} channels, {bits} bits, {rate} samples per second; expected PCM "
            "(format 1) of 8 to 32 bits, floating point (3) of 32 bits, or A-law and mu-law (6 and 7)"
        )
    form = RawFormat(rate, encoding, channels)
    try:
        form.check()
    except ConfigError as fault:
        raise FormatError(f"{where}: {fault}") from fault
    return form


def _raw_file_blocks(path: str | Path, block: int, form: RawFormat) -> Iterator[npt.NDArray[np.float32]]:
    with Path(path).open("rb") as file:
        yield from _raw_blocks(file, path, block, b"", form)


def _raw_blocks(
    file: BinaryIO,
    where: object,
    block: int,
    begin: bytes,
    form: RawFormat,
    length: int | None = None,
    notes: list[str] | None = None,
) -> Iterator[npt.NDArray[np.float32]]:
    """Yield samples (n, channels); `length` is what a header says, and `notes` receives what is wrong about it.

    Raw samples without a header (notes None) that end within a sample probably have another encoding.
    """
    width = form.width
    read = getattr(file, "read1", file.read)  # returns the available bytes without waiting for more
    data = begin
    unread = length
    while True:
        size = width * block - len(data)
        more = read(size if unread is None else min(size, unread)) if size > 0 else b""
        if unread is not None:
            unread -= len(more)
        ended = size > 0 and not more
        data += more
        num_complete = len(data) - len(data) % width
        if num_complete:
            yield form.decode(data[:num_complete], where)
        data = data[num_complete:]
        if ended:
            break
    if data and notes is None:
        raise FormatError(f"{where}: ends within a sample; expected {width} bytes per sample")
    if notes is None:
        return
    if length is not None and not unread and getattr(file, "seekable", bool)():  # a pipe may stay open
        skipped = skipped_bytes(file, b"RIFF", file.tell())
        notes += [too_few(length, skipped)] if skipped else []
    if unread and length is not None:
        notes.append(f"{length - unread} bytes of samples, its header says {length}; read to the end")
    elif data:
        notes.append(f"{len(data)} bytes after the last whole sample were skipped")
