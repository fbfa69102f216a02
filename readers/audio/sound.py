"""Reads audio with libsndfile, also files whose header says something wrong about their length.

Recorders that were interrupted, and programs that write to a pipe, leave such files.  They are read to their end, with
a note.
"""

import functools
import io
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from readers.audio.data_size import NO_LENGTH, data_size
from readers.audio.mpeg import mpeg_audio
from readers.audio.sphere import read_sphere_header
from readers.common.audio_format import MP3, NIST_SPHERE, WAV
from readers.errors import FormatError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FULL_SCALE = 32768.0
USUAL_FRAMES = 100  # per byte; MP3 has at most 48, FLAC more only in silence
PIECE = 1 << 20  # numbers that are decoded at a time of other files; memory for what a header promises is not allocated
# Encodings of at most 16 bits are read exactly as 16-bit integers; others would be truncated.
NARROW_CODINGS = ("PCM_16", "PCM_S8", "PCM_U8", "ULAW", "ALAW")
_UNKNOWN = 1 << 62  # libsndfile's number of frames is about twice this if a FLAC header has none


class Sound:
    """An audio file that is being decoded.

    Parameters
    ----------
    path : path
    form : str
        Its format, as `readers.common.audio_format.audio_format` returns it.

    Attributes
    ----------
    rate, channels : int
        Samples per second; number of channels.
    num_samples : int or None
        Samples per channel, as the header says or, where that is wrong, as far as it is known without decoding.
    notes : list of str
        What is unusual about the file; complete when it has been read to the end.

    Raises
    ------
    FormatError
        For a file that libsndfile does not decode, and damage within MPEG audio.
    """

    def __init__(self, path: str | Path, form: str):
        import soundfile

        self.path = path
        self.notes: list[str] = []
        self._least = self._position = 0
        self._ended = False
        header = read_sphere_header(path) if form == NIST_SPHERE else {}
        self._bytes, counted = self._source(form)
        try:
            source = self._bytes.fileno() if type(self._bytes) is io.FileIO else self._bytes
            self._file = _sequential()(source, closefd=False)
        except (soundfile.LibsndfileError, RuntimeError) as fault:
            self._bytes.close()
            raise FormatError(f"{path}: {_reason(fault)}; expected audio that libsndfile can decode") from fault
        self.rate = self._file.samplerate
        self.channels = self._file.channels
        frames = self._file.frames
        self._narrow = self._file.subtype in NARROW_CODINGS
        self.num_samples = frames if counted and frames < _UNKNOWN else None
        if self.num_samples is None and form != MP3:
            self.notes.append(NO_LENGTH)
        stated = header.get("sample_count", frames)
        if frames > stated:
            self.close()
            raise FormatError(f"{path}: {frames} samples; expected {stated}, as its header says")
        if frames < stated:
            self.notes.append(f"{frames} samples, its header says {stated}; read to the end")

    def _source(self, form: str) -> tuple[io.IOBase, bool]:
        """Return what the decoder is to read, and whether it will know the number of samples."""
        if form == MP3:
            audio = mpeg_audio(self.path)
            self.notes += audio.notes
            self._least = audio.least
            return io.FileIO(self.path) if audio.content is None else io.BytesIO(audio.content), audio.is_counted
        size = data_size(self.path)
        if size is not None:
            self.notes += [size.note] if size.note else []
            if size.stated is None and form in (WAV, "CAF"):
                return _WithSize(self.path, *size.field, size.present), True
        return io.FileIO(self.path), True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._bytes.close()

    def part(self, first: int = 0, last: int | None = None) -> npt.NDArray[np.float32]:
        """Return the samples first..last (N, channels), float32 on the scale of 16-bit integers.

        last None is the end of the file.  Raises FormatError for a part that the file does not have, and damage.
        """
        stop = None if last is None else last + 1
        if first or last is not None:
            if self.num_samples is not None:
                stop = part_stop(self.path, self.num_samples, first, last)
            self._skip(first)
        end = self.num_samples if stop is None else stop
        most = max(1, PIECE // self.channels)
        if end is not None and end - self._position <= USUAL_FRAMES * Path(self.path).stat().st_size:
            most = end - self._position
        pieces: list[npt.NDArray[np.float32]] = []
        while not pieces or (len(pieces[-1]) and self._position != end):
            pieces.append(self.read(most if end is None else min(most, end - self._position)))
        if last is None or end is None or self._position < end:
            self._check_end()
            if self.num_samples is None and (first or last is not None):
                part_stop(self.path, self._position, first, last)
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _skip(self, count: int) -> None:
        """Skip samples; without a length, libsndfile does not always find them, so they are decoded."""
        import soundfile

        if self.num_samples is None:
            while self._position < count and len(self.read(min(PIECE, count - self._position))):
                pass
        elif count:
            try:
                self._position = self._file.seek(count)
            except (soundfile.LibsndfileError, RuntimeError) as fault:
                raise FormatError(f"{self.path}: no sample {count} ({_reason(fault)}); expected one") from fault

    def blocks(self, size: int) -> Iterator[npt.NDArray[np.float32]]:
        """Yield all samples in blocks (n, channels), n <= size, and close the file.  Raises FormatError for damage."""
        with self:
            while len(samples := self.read(size)):
                yield samples
            self._check_end()

    def read(self, count: int) -> npt.NDArray[np.float32]:
        """Return the next samples (n, channels), n <= count; none at the end.  Raises FormatError for damage."""
        import soundfile

        buffer = np.empty((0 if self._ended else count, self.channels), np.int16 if self._narrow else np.float32)
        try:
            samples = self._file.read(out=buffer) if len(buffer) else buffer
        except (soundfile.LibsndfileError, RuntimeError) as fault:
            position = self._file.tell()
            # The decoder of FLAC fails where a file was cut, too; it has then read all bytes.
            if type(self._bytes) is not io.FileIO or self._bytes.tell() < Path(self.path).stat().st_size:
                where = f"{self.path}: damaged after {position / self.rate:.2f} s"
                raise FormatError(f"{where} ({_reason(fault)}); expected audio that libsndfile can decode") from fault
            samples = buffer[: max(0, position - self._position)]
            self._ended = True
            if self.num_samples is None:
                self.notes.append("its last block is cut short and was skipped")
        self._position += len(samples)
        return full_scale(samples, self._narrow)

    def _check_end(self) -> None:
        """Add a note, or raise FormatError, if there are less samples than expected."""
        if self._position < self._least:
            raise FormatError(
                f"{self.path}: {self._position} samples decoded; expected at least {self._least}, as many as its MPEG "
                "frames have; convert it to WAV"
            )
        if self.num_samples is not None and self._position < self.num_samples:
            self.notes.append(f"{self._position} samples, its header says {self.num_samples}; read to the end")


class _WithSize(io.FileIO):
    """A WAV or CAF file with a size of its samples, for libsndfile, which reads none without it."""

    def __init__(self, path: str | Path, place: int, form: str, size: int):
        super().__init__(path)
        self.place = place
        self.size = struct.pack(form, min(size, (1 << 8 * struct.calcsize(form)) - 1))

    def readinto(self, buffer: "WriteableBuffer") -> int:
        begin = self.tell()
        count = super().readinto(buffer)
        for position, byte in enumerate(self.size, self.place - begin):
            if 0 <= position < count:
                memoryview(buffer)[position : position + 1] = bytes([byte])
        return count


def full_scale(samples: npt.NDArray[Any], narrow: bool) -> npt.NDArray[np.float32]:
    """Return what libsndfile has read as float32 on the scale of 16-bit integers.

    narrow: whether it has read integers.  Numbers that are too large for float32 become infinite.
    """
    samples = samples.astype(np.float32, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):  # `features` refuses samples that are not finite
        return samples if narrow else samples * np.float32(FULL_SCALE)


def part_stop(path: str | Path, num_samples: int, first: int, last: int | None) -> int:
    """Return the sample after the last one of a part.  Raises FormatError unless the file has the part."""
    stop = num_samples if last is None else last + 1
    if not 0 <= first < stop <= num_samples:
        raise FormatError(f"{path}: samples [{first},{stop - 1}] of {num_samples}; expected a part of the file")
    return stop


def _reason(fault: Exception) -> str:
    """Return what libsndfile says, without the name of the file."""
    return getattr(fault, "error_string", str(fault)).rstrip(". ")


@functools.cache
def _sequential() -> type:
    """Return the class of files that are read without seeking, after which the decoder of MP3 makes errors."""
    import soundfile

    class Sequential(soundfile.SoundFile):
        def seekable(self) -> bool:
            return False

    return Sequential
