"""Audio in blocks, from a long file or a pipe, such as the output of a microphone program.

A pipe transports 16-bit little-endian samples with a WAV header, which contains the sampling rate, or raw samples, at a
rate and in an encoding given by the user.  Files may have any format of `read_audio`.
"""

import os
import stat
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from readers.audio.audio_file import NARROW_CODINGS, check_riff, full_scale, read_audio
from readers.audio.raw import ENCODINGS, PCM_16, RawFormat, decode_samples
from readers.audio.sphere import read_sphere_header
from readers.common.audio_format import HEAD_SIZE, MP3, NIST_SPHERE, WAV, audio_format
from readers.errors import ConfigError, FormatError

PCM, EXTENSIBLE = 1, 0xFFFE  # format tags of WAV
UNKNOWN_LENGTH = 0x7FFFF000  # a writer that cannot seek back writes a length of at least this, or 0
MAX_HEADER = 1 << 20
STANDARD_INPUT = "-"


class AudioStream(NamedTuple):
    """Audio in blocks.

    Attributes
    ----------
    rate : int
        Samples per second.
    blocks : iterator of (n,) float32
        Samples on the scale of 16-bit integers, n > 0.
    """

    rate: int
    blocks: Iterator[np.ndarray]


def open_audio(path: str | os.PathLike, block: int, rate: int | None = None, encoding: str = PCM_16) -> AudioStream:
    """Open audio for reading in blocks.

    Parameters
    ----------
    path : path
        File, named pipe, or `-` for standard input.
    block : int
        Samples per block; a pipe may return fewer.
    rate : int, optional
        Sampling rate of raw samples, in Hz.
    encoding : str
        Encoding of raw samples, a key of `readers.audio.raw.ENCODINGS`.

    Returns
    -------
    AudioStream
        Its iterator raises FormatError if the audio is truncated.

    Raises
    ------
    FormatError
        For an unknown format and for several channels.
    ConfigError
        For raw samples without a rate, an unknown encoding, and a rate that differs from that of the file.
    """
    raw = None if rate is None else RawFormat(rate, encoding)
    if raw is not None:
        raw.check()
    if os.fspath(path) == STANDARD_INPUT:
        if sys.stdin.buffer.isatty():
            raise ConfigError("standard input: a terminal; expected audio from a pipe, for instance from arecord")
        stream = _from_pipe(sys.stdin.buffer, "standard input", block, raw)
    elif not stat.S_ISREG(Path(path).stat().st_mode):
        file = Path(path).open("rb")  # noqa: SIM115  (the iterator of blocks closes it)
        stream = _from_pipe(file, os.fspath(path), block, raw)
    else:
        stream = _from_file(path, block, raw)
    if rate is not None and stream.rate != rate:
        raise ConfigError(f"{path}: {stream.rate} samples per second; expected {rate}, as requested")
    return stream


def _from_file(path, block: int, raw: RawFormat | None) -> AudioStream:
    with Path(path).open("rb") as file:
        form = audio_format(file.read(HEAD_SIZE))
    if form in (None, MP3):  # soundfile seeks after each block, after which the decoder of MP3 makes errors
        samples, rate = read_audio(path, raw=raw)
        return AudioStream(rate, iter([samples[i : i + block] for i in range(0, len(samples), block)]))
    if form == NIST_SPHERE:
        read_sphere_header(path)
    elif form == WAV:
        check_riff(path)
    import soundfile

    try:
        file = soundfile.SoundFile(os.fspath(path))
    except (soundfile.LibsndfileError, RuntimeError) as fault:
        raise FormatError(f"{path}: {fault}; expected audio that libsndfile can decode") from fault
    if file.channels != 1:
        file.close()
        raise FormatError(f"{path}: {file.channels} channels; expected one; mix the file down")
    return AudioStream(file.samplerate, _sndfile_blocks(file, path, block))


def _sndfile_blocks(file, path, block: int) -> Iterator[np.ndarray]:
    import soundfile

    narrow, done = file.subtype in NARROW_CODINGS, 0
    with file:
        while True:
            try:
                samples = file.read(block, dtype="int16" if narrow else "float32")
            except (soundfile.LibsndfileError, RuntimeError) as fault:
                raise FormatError(f"{path}: {fault}; expected audio that libsndfile can decode") from fault
            if not len(samples):
                break
            done += len(samples)
            yield full_scale(samples, narrow)
        if done != file.frames:
            raise FormatError(f"{path}: {done} samples decoded; expected {file.frames}, as its header says")


def _from_pipe(file: BinaryIO, where: str, block: int, raw: RawFormat | None) -> AudioStream:
    begin = _read_exactly(file, 4)
    if not begin:
        raise FormatError(f"{where}: empty; expected audio")
    if begin == b"RIFF":
        rate, length = _read_wav_header(file, where)
        return AudioStream(rate, _raw_blocks(file, where, block, b"", length, PCM_16))
    if form := audio_format(begin):
        raise FormatError(f"{where}: {form} audio; expected WAV or raw samples in a pipe")
    if raw is None:
        raise ConfigError(f"{where}: raw samples; expected a WAV header, or their sampling rate")
    return AudioStream(raw.rate, _raw_blocks(file, where, block, begin, None, raw.encoding))


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    """Read `size` bytes, or fewer at the end of the file."""
    data = b""
    while len(data) < size:
        more = file.read(size - len(data))
        if not more:
            break
        data += more
    return data


def _read_wav_header(file: BinaryIO, where: str) -> tuple[int, int | None]:
    """Return (rate, bytes of samples or None if unknown); leaves the file positioned at the first sample."""
    kind, rate, done = _read_exactly(file, 8)[4:], None, 0
    while kind == b"WAVE" and done < MAX_HEADER:
        head = _read_exactly(file, 8)
        if len(head) < 8:
            break
        name, length = head[:4], struct.unpack("<I", head[4:])[0]
        if name == b"data":
            if rate is None:
                break
            return rate, None if length == 0 or length >= UNKNOWN_LENGTH else length
        done += length
        if done > MAX_HEADER:
            break
        content = _read_exactly(file, length + length % 2)
        if name == b"fmt ":
            rate = _parse_format(content, where)
    raise FormatError(f"{where}: no WAV header; expected RIFF, WAVE, a chunk fmt and a chunk data")


def _parse_format(content: bytes, where: str) -> int:
    if len(content) < 16:
        raise FormatError(f"{where}: format of {len(content)} bytes in the WAV header; expected at least 16")
    tag, channels, rate, _, _, bits = struct.unpack("<HHIIHH", content[:16])
    if tag == EXTENSIBLE and len(content) >= 26:
        tag = struct.unpack("<H", content[24:26])[0]
    if (tag, channels, bits) != (PCM, 1, 16) or rate < 1:
        raise FormatError(
            f"{where}: WAV of format {tag}, {channels} channels, {bits} bits, {rate} samples per second; expected PCM, "
            "which is 1, one channel, 16 bits"
        )
    return rate


def _raw_blocks(
    file: BinaryIO, where: str, block: int, begin: bytes, length: int | None, encoding: str
) -> Iterator[np.ndarray]:
    width = ENCODINGS[encoding][0]
    read = getattr(file, "read1", file.read)  # returns the available bytes without waiting for more
    data, left = begin, length
    while True:
        size = width * block - len(data)
        more = read(size if left is None else min(size, left)) if size > 0 else b""
        if left is not None:
            left -= len(more)
        ended = size > 0 and not more
        data += more
        whole = len(data) - len(data) % width
        if whole:
            yield decode_samples(data[:whole], encoding, where)
        data = data[whole:]
        if ended:
            break
    if left:
        raise FormatError(f"{where}: truncated, {left} bytes of samples are missing; expected {length}")
    if data:
        raise FormatError(f"{where}: ends within a sample; expected {width} bytes per sample")
