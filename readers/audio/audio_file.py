"""Audio files: WAV, FLAC, NIST SPHERE, MP3 and others through libsndfile, HTK waveforms directly.

The first bytes determine the format, not the name: TIMIT's `.WAV` files are NIST SPHERE.
"""

import contextlib
import io
import os
import shutil
import warnings
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import numpy as np
import numpy.typing as npt

from readers.audio.raw import RawFormat
from readers.audio.sound import Sound, part_stop
from readers.audio.sphere import sphere_header
from readers.common.audio_format import HEAD_SIZE, MP3, audio_format
from readers.common.files import atomic_write
from readers.common.temporary import scratch_directory
from readers.errors import AudioWarning, ConfigError, FormatError, ShapeError
from readers.htk.parameter_file import WAVEFORM, read_htk, read_htk_header
from readers.htk.units import TICKS_PER_SECOND

MIX: Final = "mix"
AudioSource = str | Path | bytes | BinaryIO
Channel = int | Literal["mix"] | None  # counted from 0, or the mean of all; None for audio that has only one


def read_audio(
    path: AudioSource,
    channel: Channel = None,
    raw: RawFormat | None = None,
    first: int = 0,
    last: int | None = None,
    notes: list[str] | None = None,
) -> tuple[npt.NDArray[np.float32], int]:
    """Read an audio file, or a part of one.

    A file that ends before its header says, or whose header has no length, is read to its end; of MP3, bytes before the
    first frame and after the last whole one are skipped.

    Parameters
    ----------
    path : path, bytes or file
        WAV, FLAC, NIST SPHERE, HTK waveform, or another format that libsndfile decodes: AIFF, AU, Ogg, MP3, CAF, VOC.
        The name of a file, its content, or the file itself, open in binary mode.
    channel : int or "mix", optional
        Channel to read, counted from 0, or the mean of all; required if there are several.
    raw : RawFormat, optional
        The format of files without a header, which are otherwise refused.
    first, last : int
        First and last sample of a part, counted from 0, inclusive; last None is the end of the file.  Only the part is
        decoded, except of MP3, HTK waveforms and files without a header.
    notes : list of str, optional
        Receives what is unusual about the file; without it, AudioWarning is given.

    Returns
    -------
    samples : (N,) float32, N > 0
        On the scale of 16-bit integers: 16-bit files return their integers, others are scaled, without rounding, so
        that full scale is 32768; `Recognizer.transcribe` takes them divided by that.
    rate : int
        Sampling rate in Hz.

    Raises
    ------
    FormatError
        For an unknown format, a damaged or empty file, an encoding that cannot be decoded (shorten-compressed
        SPHERE), a missing channel, and a part that the file does not have.
    ConfigError
        For an unknown encoding in `raw`, a file whose header has another rate, and a file that is open as text.
    """
    irregularities: list[str] = []
    with _as_file(path) as (file, where):
        samples, rate = _read_file(file, channel, raw, first, last, irregularities)
    if notes is not None:
        notes += irregularities
    for note in irregularities if notes is None else ():
        warnings.warn(f"{where}: {note}", AudioWarning, stacklevel=2)
    return samples, rate


def audio_name(audio: AudioSource) -> str:
    """Return the name of audio in messages."""
    return os.fspath(audio) if isinstance(audio, (str, os.PathLike)) else str(getattr(audio, "name", "bytes"))


@contextlib.contextmanager
def _as_file(audio: AudioSource) -> Iterator[tuple[str, str]]:
    """Yield a file with the content of audio, and the name of the audio, which errors about the file then have."""
    where = audio_name(audio)
    if isinstance(audio, (str, os.PathLike)):
        yield where, where
        return
    source = audio if hasattr(audio, "read") else io.BytesIO(audio)
    if not isinstance(source.read(0), bytes):
        raise ConfigError(f"{where}: open as text; expected a file that is open in binary mode")
    with scratch_directory() as directory:
        copy = os.fspath(directory / "audio")
        with Path(copy).open("wb") as file:
            shutil.copyfileobj(source, file)
        try:
            yield copy, where
        except (FormatError, ConfigError) as fault:
            raise fault.reworded(str(fault).replace(copy, where)) from fault


def _read_file(
    path: str, channel: Channel, raw: RawFormat | None, first: int, last: int | None, notes: list[str]
) -> tuple[np.ndarray, int]:
    """Read an audio file like `read_audio`."""
    with Path(path).open("rb") as file:
        head = file.read(HEAD_SIZE)
    if not head:
        raise FormatError(f"{path}: empty file; expected audio")
    form = audio_format(head)
    if form is None:
        samples, rate = _read_htk_waveform(path) if raw is None else _read_without_magic(path, raw)
    else:
        with Sound(path, form) as sound:
            # The decoder of MP3 makes errors after it has moved to another place.
            samples = sound.part() if form == MP3 else sound.part(first, last)
            rate = sound.rate
        notes += sound.notes
    if (first or last is not None) and form in (None, MP3):
        samples = samples[first : part_stop(path, len(samples), first, last)]
    samples = choose_channel(samples, channel, path)
    if not samples.size:
        raise FormatError(f"{path}: no samples; expected at least one")
    if raw is not None and rate != raw.rate:
        raise ConfigError(f"{path}: {rate} samples per second; expected {raw.rate}, as requested")
    return samples, rate


def choose_channel(samples: npt.NDArray[np.float32], channel: Channel, where: object) -> npt.NDArray[np.float32]:
    """Return one channel (N,), or the mean of all, of samples (N, channels).  Raises FormatError if it is missing."""
    count = samples.shape[1]
    if channel is None:
        if count > 1:
            raise FormatError(
                f"{where}: {count} channels; expected one; choose it by the option channel (0, 1 or mix), "
                "or by STEREOMODE = LEFT or RIGHT in the configuration of the features"
            )
        channel = 0
    if channel == MIX:
        return samples.mean(axis=1, dtype=np.float32) if count > 1 else np.ascontiguousarray(samples[:, 0])
    if not 0 <= channel < count:
        raise FormatError(f"{where}: channel {channel} of {count}; expected 0 to {count - 1}, or {MIX}")
    return np.ascontiguousarray(samples[:, channel])


def _read_htk_waveform(path: str | Path) -> tuple[npt.NDArray[np.float32], int]:
    try:
        header = read_htk_header(path)
    except FormatError as fault:
        raise FormatError(
            f"{path}: audio of no known format; expected WAV, FLAC, MP3, Ogg, NIST SPHERE or an HTK waveform, to "
            "which ffmpeg converts others; raw samples need the option rate"
        ) from fault
    if header.base_kind != WAVEFORM or header.dim != 1:
        raise FormatError(f"{path}: an HTK feature file; expected audio")
    rate = round(TICKS_PER_SECOND / header.period)
    if rate < 1:
        raise FormatError(
            f"{path}: a sample every {header.period} units of 100 ns; expected at most {TICKS_PER_SECOND}"
        )
    return read_htk(path).frames.T, rate


def is_htk_waveform(path: str | Path) -> bool:
    """Whether a file begins with the header of an HTK waveform of one channel."""
    try:
        header = read_htk_header(path)
    except FormatError:
        return False
    return header.base_kind == WAVEFORM and header.dim == 1


def _read_without_magic(path: str | Path, raw: RawFormat) -> tuple[npt.NDArray[np.float32], int]:
    """Read an HTK waveform or, if the file does not begin with HTK's header, raw samples."""
    raw.check()
    try:
        return _read_htk_waveform(path)
    except FormatError:
        return raw.decode(Path(path).read_bytes(), path), raw.rate


def _to_int16(samples: npt.NDArray[Any], path: str | Path) -> npt.NDArray[np.int16]:
    samples = np.asarray(samples)
    if samples.ndim != 1:
        raise ShapeError(f"{path}: samples of shape {samples.shape}; expected one channel, (N,)")
    rounded: npt.NDArray[Any] = np.rint(samples)
    if samples.size and not (rounded.min() >= -32768 and rounded.max() <= 32767):
        raise ShapeError(
            f"{path}: samples from {samples.min():g} to {samples.max():g}; expected -32768 to 32767; scale them first"
        )
    return rounded.astype("<i2")


def write_wav(path: str | Path, samples: npt.NDArray[Any], sample_rate: int) -> None:
    """Write samples (N,) on the 16-bit scale, rounded, as 16-bit PCM.

    Raises ShapeError for values outside of the range of 16 bits.
    """
    data = _to_int16(samples, path)
    with atomic_write(path) as raw, wave.open(raw, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(data.tobytes())


def write_sphere(path: str | Path, samples: npt.NDArray[Any], sample_rate: int) -> None:
    """Write a NIST SPHERE file: 16-bit little-endian PCM with a 1024-byte header.

    Parameters
    ----------
    path : path
        File to write.
    samples : (N,) array
        Samples on the scale of 16-bit integers; they are rounded.
    sample_rate : int
        In Hz.

    Raises
    ------
    ShapeError
        For values outside of the range of 16 bits.
    """
    data = _to_int16(samples, path)
    with atomic_write(path) as file:
        file.write(sphere_header(data, sample_rate))
        file.write(data.tobytes())


def write_flac(path: str | Path, samples: npt.NDArray[Any], sample_rate: int) -> None:
    """Write samples (N,) on the 16-bit scale, rounded, as FLAC with 16 bits.

    Raises ShapeError for values outside of the range of 16 bits, and FormatError for a sample rate that FLAC lacks.
    """
    import soundfile

    data = _to_int16(samples, path)
    with atomic_write(path) as raw:
        try:
            soundfile.write(raw, data, sample_rate, format="FLAC", subtype="PCM_16")
        except soundfile.LibsndfileError as fault:
            raise FormatError(
                f"{path}: {fault.error_string.rstrip('. ')}; expected a sample rate that FLAC supports, not "
                f"{sample_rate}"
            ) from fault
