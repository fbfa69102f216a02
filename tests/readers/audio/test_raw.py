"""Raw samples, in every encoding, against libsndfile."""

import io
import sys

import numpy as np
import pytest
import soundfile

from readers.audio.audio_file import read_audio, write_wav
from readers.audio.audio_stream import open_audio
from readers.audio.raw import ENCODINGS, RawFormat
from readers.errors import ConfigError, FormatError

RATE = 8000
# Encoding -> subtype and byte order of libsndfile.
SUBTYPES = {
    "s16le": ("PCM_16", "LITTLE"),
    "s16be": ("PCM_16", "BIG"),
    "s8": ("PCM_S8", "FILE"),
    "u8": ("PCM_U8", "FILE"),
    "s24le": ("PCM_24", "LITTLE"),
    "s24be": ("PCM_24", "BIG"),
    "s32le": ("PCM_32", "LITTLE"),
    "s32be": ("PCM_32", "BIG"),
    "f32le": ("FLOAT", "LITTLE"),
    "f32be": ("FLOAT", "BIG"),
    "mulaw": ("ULAW", "FILE"),
    "alaw": ("ALAW", "FILE"),
}


def bytes_of(encoding):
    """Samples of each value that the first byte of an encoding can have."""
    if encoding.startswith("f32"):
        return np.linspace(-1, 1, 100).astype("<f4" if encoding.endswith("le") else ">f4").tobytes()
    return bytes(value for value in range(256) for _ in range(ENCODINGS[encoding][0]))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_samples_are_those_of_libsndfile(tmp_path, encoding, monkeypatch):
    data, (subtype, order) = bytes_of(encoding), SUBTYPES[encoding]
    (tmp_path / "a").write_bytes(data)
    form = {"format": "RAW", "channels": 1, "samplerate": RATE, "subtype": subtype, "endian": order}
    expected = soundfile.read(tmp_path / "a", dtype="float64", **form)[0] * 32768
    samples, rate = read_audio(tmp_path / "a", raw=RawFormat(RATE, encoding))
    assert (samples.dtype, rate) == (np.float32, RATE)
    np.testing.assert_allclose(samples, expected, rtol=1e-7)
    np.testing.assert_array_equal(np.concatenate(list(open_audio(tmp_path / "a", 7, RATE, encoding).blocks)), samples)
    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": io.BytesIO(data)}))
    np.testing.assert_array_equal(np.concatenate(list(open_audio("-", 7, RATE, encoding).blocks)), samples)


def test_a_header_counts_and_must_have_the_rate(tmp_path):
    write_wav(tmp_path / "a.wav", np.arange(100), RATE)
    assert len(read_audio(tmp_path / "a.wav", raw=RawFormat(RATE, "u8"))[0]) == 100
    with pytest.raises(ConfigError, match=r"a.wav: 8000 samples per second; expected 16000, as requested"):
        read_audio(tmp_path / "a.wav", raw=RawFormat(16000))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [np.nan, np.inf, -3e38, 1e20])
def test_floats_that_cannot_be_samples(tmp_path, value):
    data = np.array([0.5, value, 0.25], "<f4").tobytes()
    (tmp_path / "a").write_bytes(data)
    message = (
        r"a: read as f32le, samples are not finite or too large; expected numbers from about -1 to 1; the encoding"
    )
    with pytest.raises(FormatError, match=message):
        read_audio(tmp_path / "a", raw=RawFormat(RATE, "f32le"))
    with pytest.raises(FormatError, match=message):
        list(open_audio(tmp_path / "a", 2, RATE, "f32le").blocks)


@pytest.mark.filterwarnings("error")
def test_floats_beyond_the_scale_become_infinite(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.array([0.5, 1e38, np.nan], "<f4"), RATE, subtype="FLOAT")
    np.testing.assert_array_equal(read_audio(tmp_path / "a.wav")[0], [16384, np.inf, np.nan])
    np.testing.assert_array_equal(list(open_audio(tmp_path / "a.wav", 10).blocks), [[16384, np.inf, np.nan]])


def test_faults(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    with pytest.raises(FormatError, match=r"a: 3 bytes; expected a multiple of 2, the bytes of a sample"):
        read_audio(tmp_path / "a", raw=RawFormat(RATE))
    with pytest.raises(ConfigError, match=r"encoding 'mp3' is unknown; expected one of s16le, s16be"):
        read_audio(tmp_path / "a", raw=RawFormat(RATE, "mp3"))
    with pytest.raises(ConfigError, match=r"-1 samples per second; expected at least 1"):
        open_audio(tmp_path / "a", 10, -1)
