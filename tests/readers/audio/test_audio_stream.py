"""Audio in blocks against the whole, from files and pipes, and what is wrong with it."""

import io
import os
import struct
import sys
import threading

import numpy as np
import pytest
import soundfile

from readers.audio import audio_stream
from readers.audio.audio_file import read_audio, write_sphere, write_wav
from readers.audio.audio_stream import open_audio
from readers.audio.raw import RawFormat
from readers.errors import ConfigError, FormatError
from readers.htk.parameter_file import WAVEFORM, write_htk

RATE = 16000


def samples_of(count, seed=0):
    return np.random.default_rng(seed).integers(-20000, 20000, count).astype(np.int16)


def wav(samples, length=None, tag=1, channels=1, bits=16, extra=b""):
    data = samples.astype("<i2").tobytes()
    size = channels * bits // 8
    form = struct.pack("<HHIIHH", tag, channels, RATE, RATE * size, size, bits)
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + extra
    chunks += b"data" + struct.pack("<I", len(data) if length is None else length) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


@pytest.mark.parametrize("kind", ["wav", "flac", "sphere", "htk", "wav-float"])
@pytest.mark.parametrize("block", [1, 1000, 100000])
def test_blocks_of_a_file_are_the_file(tmp_path, kind, block):
    samples, path = samples_of(1 if block == 1 else 2500), tmp_path / "audio"
    if kind == "wav":
        write_wav(path, samples, RATE)
    elif kind == "sphere":
        write_sphere(path, samples, RATE)
    elif kind == "htk":
        write_htk(path, samples[None].astype(np.float32), WAVEFORM, 625)
    else:
        form = {"flac": ("FLAC", "PCM_16"), "wav-float": ("WAV", "FLOAT")}[kind]
        soundfile.write(path, samples / 32768.0, RATE, format=form[0], subtype=form[1])
    stream = open_audio(path, block)
    blocks = list(stream.blocks)
    assert stream.rate == RATE
    assert all(len(part) == block for part in blocks[:-1])
    assert all(part.dtype == np.float32 for part in blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), read_audio(path)[0])


@pytest.mark.parametrize("length", [None, 0, 0xFFFFFFFF, 0x7FFFFFFF])
def test_wav_from_a_pipe(feed, length):
    samples = samples_of(300)
    feed(wav(samples, length, extra=b"LIST" + struct.pack("<I", 5) + b"abcde\0"))
    stream = open_audio("-", 100)
    assert stream.rate == RATE
    blocks = list(stream.blocks)
    assert max(map(len, blocks)) <= 100
    np.testing.assert_array_equal(np.concatenate(blocks), samples)


def test_bare_samples_from_a_pipe(feed):
    samples = samples_of(300)
    feed(samples.astype("<i2").tobytes())
    stream = open_audio("-", 100, 8000)
    assert stream.rate == 8000
    np.testing.assert_array_equal(np.concatenate(list(stream.blocks)), samples)


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "ALAW", "ULAW"])
@pytest.mark.parametrize("extensible", [False, True])
def test_every_encoding_of_wav_in_a_pipe_has_the_samples_of_the_file(feed, tmp_path, subtype, extensible):
    samples, path = samples_of(600).reshape(-1, 2) / 32768, tmp_path / "audio.wav"
    soundfile.write(path, samples, 44100, subtype, format="WAVEX" if extensible else "WAV")
    for channel in (0, 1, "mix"):
        feed(path.read_bytes())
        stream = open_audio("-", 100, channel=channel)
        expected, rate = read_audio(path, channel)
        assert stream.rate == rate == 44100
        np.testing.assert_array_equal(np.concatenate(list(stream.blocks)), expected)


@pytest.mark.parametrize(("form", "subtype"), [("FLAC", "PCM_16"), ("MP3", None), ("OGG", "VORBIS"), ("OGG", "OPUS")])
def test_compressed_audio_in_blocks_and_in_a_pipe_is_that_of_the_file(feed, tmp_path, form, subtype):
    time = np.arange(24000)[:, None] / 48000
    path = tmp_path / "audio"
    soundfile.write(path, 0.5 * np.sin(time * [2000, 5000]), 48000, subtype, format=form)
    for channel in (1, "mix"):
        expected, rate = read_audio(path, channel)
        feed(path.read_bytes())
        for source in (path, "-"):
            stream = open_audio(source, 1000, channel=channel)
            assert stream.rate == rate
            np.testing.assert_array_equal(np.concatenate(list(stream.blocks)), expected)


def test_channels_of_raw_samples(feed, tmp_path):
    samples, path = samples_of(300).reshape(-1, 3), tmp_path / "audio.raw"
    path.write_bytes(samples.astype(">i2").tobytes())
    for channel, expected in ((0, samples[:, 0]), (2, samples[:, 2]), ("mix", samples.mean(axis=1, dtype=np.float32))):
        feed(path.read_bytes())
        for source in (path, "-"):
            blocks = list(open_audio(source, 7, 8000, "s16be", 3, channel).blocks)
            np.testing.assert_array_equal(np.concatenate(blocks), expected)
        np.testing.assert_array_equal(read_audio(path, channel, RawFormat(8000, "s16be", 3))[0], expected)
    with pytest.raises(FormatError, match=r"audio\.raw: channel 3 of 3; expected 0 to 2, or mix"):
        open_audio(path, 7, 8000, "s16be", 3, 3)
    with pytest.raises(FormatError, match=r"audio\.raw: 600 bytes; expected a multiple of 14"):
        read_audio(path, 0, RawFormat(8000, channels=7))
    with pytest.raises(ConfigError, match="0 channels; expected 1 to 1024"):
        open_audio(path, 7, 8000, "s16be", 0)


def test_what_follows_the_samples_of_a_wav_file_is_no_audio(feed):
    samples = samples_of(10)
    feed(wav(samples) + b"LIST....")
    np.testing.assert_array_equal(np.concatenate(list(open_audio("-", 100).blocks)), samples)


def test_blocks_of_a_named_pipe_come_as_they_are_written(tmp_path):
    path, samples = tmp_path / "pipe", samples_of(40)
    os.mkfifo(path)
    seen = threading.Event()

    def write():
        with path.open("wb", buffering=0) as file:
            file.write(samples[:30].tobytes())
            assert seen.wait(10)
            file.write(samples[30:].tobytes())

    writer = threading.Thread(target=write)
    writer.start()
    blocks = open_audio(path, 1000, RATE).blocks
    first = [next(blocks)]
    while sum(map(len, first)) < 30:
        first.append(next(blocks))
    seen.set()
    np.testing.assert_array_equal(np.concatenate([*first, *blocks]), samples)
    writer.join()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (wav(samples_of(10), channels=2), "standard input: 2 channels; expected one; choose it by the option channel"),
        (wav(samples_of(10), channels=0), "WAV of format 1, 0 channels"),
        (wav(samples_of(10), channels=4000), "standard input: 4000 channels; expected 1 to 1024"),
        (wav(samples_of(10), tag=2, bits=4), "WAV of format 2, 1 channels, 4 bits, 16000 samples per second; expected"),
        (b"RIFF\0\0\0\0AVI ", "no WAV header; expected RIFF, WAVE, a chunk fmt and a chunk data"),
        (b"RIFF\0\0\0\0WAVEdata\4\0\0\0abcd", "no WAV header"),
        (b"RIFF\0\0\0\0WAVE", "no WAV header"),
        (b"RIFF\0\0\0\0WAVEjunk\2\0\0\0abdata", "no WAV header"),
        (b"RIFF\0\0\0\0WAVEjunk\xff\xff\xff\x70abcd", "no WAV header"),
        (b"RIFF\0\0\0\0WAVEfmt \4\0\0\0abcd", "format of 4 bytes in the WAV header"),
        (b"fLaC....", "^standard input: .*expected audio that libsndfile can decode"),
    ],
)
def test_faults_of_a_pipe_are_named(feed, content, fault):
    feed(content)
    with pytest.raises(FormatError, match=fault):
        list(open_audio("-", 100, RATE).blocks)


def test_bare_samples_need_a_rate(feed):
    feed(b"\0\0" * 10)
    with pytest.raises(
        ConfigError, match="standard input: raw samples; expected audio with a header, or the option rate"
    ):
        open_audio("-", 100)


def test_a_terminal_gives_no_audio(monkeypatch):
    class Terminal(io.BytesIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": Terminal()}))
    with pytest.raises(ConfigError, match="standard input: a terminal; expected audio from a pipe"):
        open_audio("-", 100)


def test_faults_of_a_file_are_named(tmp_path):
    path = tmp_path / "audio.wav"
    soundfile.write(path, np.zeros((10, 2)), RATE)
    with pytest.raises(FormatError, match=r"audio.wav: 2 channels; expected one"):
        open_audio(path, 100)
    write_wav(path, samples_of(100), RATE)
    with pytest.raises(ConfigError, match="16000 samples per second; expected 8000"):
        open_audio(path, 100, 8000)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(FormatError, match="audio of no known format; expected WAV"):
        open_audio(path, 100)


def test_nothing_at_all_is_no_audio(feed, tmp_path):
    feed(b"")
    with pytest.raises(FormatError, match="standard input: empty; expected audio"):
        open_audio("-", 10, RATE)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(FormatError, match="empty"):
        open_audio(tmp_path / "empty", 10)
    assert audio_stream.STANDARD_INPUT == "-"
