"""Raw samples: audio without a header, whose rate, encoding and number of channels the user knows."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from readers.errors import ConfigError, FormatError

Decoder = Callable[[bytes], npt.NDArray[np.float32]]
PCM_16 = "s16le"
MAX_CHANNELS = 1024  # as in libsndfile
LOUDEST = 2.0**46  # full scale times 2^31, for floats that hold 32-bit integers; the squares of more overflow


class RawFormat(NamedTuple):
    """The format of raw samples.

    Attributes
    ----------
    rate : int
        Samples per second.
    encoding : str
        A key of ENCODINGS, such as "s16le" (signed 16-bit integers, little-endian) or "mulaw".
    channels : int
        Number of channels; the samples of one moment follow each other.
    """

    rate: int
    encoding: str = PCM_16
    channels: int = 1

    def check(self) -> None:
        """Raise ConfigError for an unknown encoding, a rate below 1, and a number of channels out of range."""
        if self.encoding not in ENCODINGS:
            raise ConfigError(f"encoding {self.encoding!r} is unknown; expected one of {', '.join(ENCODINGS)}")
        if self.rate < 1:
            raise ConfigError(f"{self.rate} samples per second; expected at least 1")
        if not 1 <= self.channels <= MAX_CHANNELS:
            raise ConfigError(f"{self.channels} channels; expected 1 to {MAX_CHANNELS}")

    @property
    def width(self) -> int:
        """Bytes of the samples of one moment."""
        return ENCODINGS[self.encoding][0] * self.channels

    def decode(self, data: bytes, where: object) -> npt.NDArray[np.float32]:
        """Return raw samples as (N, channels) float32 on the scale of 16-bit integers.

        Raises FormatError if the data end within the samples of one moment, and for samples that are not finite or
        exceed LOUDEST.
        """
        if len(data) % self.width:
            raise FormatError(f"{where}: {len(data)} bytes; expected a multiple of {self.width}, the bytes of a sample")
        return decode_samples(data, self.encoding, where).reshape(-1, self.channels)


def _numbers(dtype: str, scale: float, offset: float = 0.0) -> tuple[int, Decoder]:
    """Return (bytes per sample, decoder) of numbers; the 16-bit scale is (number - offset) * scale."""

    def decode(data: bytes) -> npt.NDArray[np.float32]:
        values = np.frombuffer(data, dtype)
        with np.errstate(all="ignore"):  # bytes of another encoding can be NaN or too large; decode_samples checks
            return ((values.astype(np.float64) - offset) * scale).astype(np.float32)

    return np.dtype(dtype).itemsize, decode


def _three_bytes(dtype: str) -> tuple[int, Decoder]:
    """Return (bytes per sample, decoder) of integers of 24 bits, which become those of 32 bits, of type `dtype`."""

    def decode(data: bytes) -> npt.NDArray[np.float32]:
        padded = np.zeros((len(data) // 3, 4), np.uint8)
        first = 1 if dtype.startswith("<") else 0
        padded[:, first : first + 3] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        return (padded.view(dtype)[:, 0] / 65536).astype(np.float32)

    return 3, decode


def _mulaw_table() -> npt.NDArray[np.float32]:
    """Return the samples of all bytes of ITU-T G.711 mu-law."""
    code = ~np.arange(256) & 0xFF
    magnitude = (((code & 0x0F) << 3) + 0x84 << ((code & 0x70) >> 4)) - 0x84
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.float32)


def _alaw_table() -> npt.NDArray[np.float32]:
    """Return the samples of all bytes of ITU-T G.711 A-law."""
    code = np.arange(256) ^ 0x55
    segment = (code & 0x70) >> 4
    mantissa = ((code & 0x0F) << 4) + 8
    magnitude = np.where(segment == 0, mantissa, mantissa + 0x100 << np.maximum(segment - 1, 0))
    return np.where(code & 0x80, magnitude, -magnitude).astype(np.float32)


def _coded(table: npt.NDArray[np.float32]) -> tuple[int, Decoder]:
    return 1, lambda data: table[np.frombuffer(data, np.uint8)]


# Encoding -> (bytes per sample, function from bytes to float32 samples on the scale of 16-bit integers).
ENCODINGS = {
    PCM_16: _numbers("<i2", 1.0),
    "s16be": _numbers(">i2", 1.0),
    "s8": _numbers("i1", 256.0),
    "u8": _numbers("u1", 256.0, 128.0),
    "s24le": _three_bytes("<i4"),
    "s24be": _three_bytes(">i4"),
    "s32le": _numbers("<i4", 1 / 65536),
    "s32be": _numbers(">i4", 1 / 65536),
    "f32le": _numbers("<f4", 32768.0),
    "f32be": _numbers(">f4", 32768.0),
    "mulaw": _coded(_mulaw_table()),
    "alaw": _coded(_alaw_table()),
}


def decode_samples(data: bytes, encoding: str, where: object) -> npt.NDArray[np.float32]:
    """Return raw samples as (N,) float32 on the scale of 16-bit integers.

    Raises FormatError if the data end within a sample, and for samples that are not finite or exceed LOUDEST.
    """
    width, decode = ENCODINGS[encoding]
    if len(data) % width:
        raise FormatError(f"{where}: {len(data)} bytes; expected a multiple of {width}, the bytes of a sample")
    samples = decode(data)
    if samples.size and not np.abs(samples).max() <= LOUDEST:
        raise FormatError(
            f"{where}: read as {encoding}, samples are not finite or too large; expected numbers from about -1 to 1; "
            "the encoding is probably another one"
        )
    return samples
