"""Files whose header is wrong about their length, as interrupted recorders and programs in a pipe leave them."""

import io
import struct

import numpy as np
import pytest
import soundfile

from readers.audio.audio_file import read_audio, write_sphere
from readers.audio.data_size import NO_LENGTH, data_size
from readers.audio.duration import audio_seconds
from readers.audio.header import read_audio_header
from readers.errors import AudioWarning, FormatError
from tests.readers.audio.test_audio_stream import wav

RATE, SIZE = 16000, 50_000
TIME = np.arange(SIZE) / RATE
SAMPLES = np.rint(3000 * np.sin(9 * TIME) * np.sin(900 * TIME) + np.random.default_rng(0).normal(0, 99, SIZE)).astype(
    np.int16
)


# Chunks that may follow the samples of a WAV file; the last one is not padded to an even number of bytes.
AFTER = [b"LIST\4\0\0\0abcd", b"LIST\3\0\0\0abc\0id3 \2\0\0\0ab", b"LIST\3\0\0\0abc"]


def encoded(form, subtype="PCM_16", endian="FILE"):
    file = io.BytesIO()
    soundfile.write(file, SAMPLES, RATE, format=form, subtype=subtype, endian=endian)
    return file.getvalue()


def with_length(flac, number):
    """FLAC with another number of samples in its header, 36 bits."""
    return flac[:21] + bytes([flac[21] & 0xF0 | number >> 32]) + struct.pack(">I", number & 0xFFFFFFFF) + flac[26:]


@pytest.mark.parametrize("length", [0, 0xFFFFFFFF, 0x7FFFFFFF, 0x7FFFF000])
@pytest.mark.parametrize("whole", [0, 0xFFFFFFFF, 36])
def test_wav_without_a_length(every_door, length, whole):
    content = bytearray(wav(SAMPLES, length, extra=b"LIST" + struct.pack("<I", 5) + b"abcde\0"))
    content[4:8] = struct.pack("<I", whole)
    samples, notes = every_door(bytes(content))
    np.testing.assert_array_equal(samples, SAMPLES)
    assert notes == [NO_LENGTH]


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_24", "PCM_32", "FLOAT", "ULAW", "ALAW"])
def test_wav_of_every_encoding_without_a_length(every_door, tmp_path, subtype):
    content = bytearray(encoded("WAV", subtype))
    (tmp_path / "whole").write_bytes(content)
    at = content.index(b"data")
    content[at + 4 : at + 8] = content[4:8] = bytes(4)
    np.testing.assert_array_equal(every_door(bytes(content))[0], read_audio(tmp_path / "whole")[0])


def test_big_endian_wav_without_a_length(tmp_path):
    content = bytearray(encoded("WAV", endian="BIG"))
    content[40:44] = content[4:8] = bytes(4)
    (tmp_path / "a").write_bytes(content)
    np.testing.assert_array_equal(read_audio(tmp_path / "a", notes=[])[0], SAMPLES)


@pytest.mark.parametrize(
    ("form", "chunk", "sizes"),
    [("RF64", b"ds64\x1c\0\0\0", bytes(24)), ("CAF", b"data", b"\xff" * 8), ("AU", b".snd\0\0\0\x18", b"\xff" * 4)],
)
def test_other_formats_without_a_length(every_door, form, chunk, sizes):
    content = bytearray(encoded(form))
    at = content.index(chunk) + len(chunk)
    content[at : at + len(sizes)] = sizes
    samples, notes = every_door(bytes(content))
    np.testing.assert_array_equal(samples, SAMPLES)
    assert notes == [NO_LENGTH]


@pytest.mark.parametrize("after", AFTER)
def test_wav_without_samples_but_with_other_chunks_is_empty(tmp_path, after):
    (tmp_path / "a").write_bytes(wav(SAMPLES[:0]) + after)
    with pytest.raises(FormatError, match="a: no samples; expected at least one"):
        read_audio(tmp_path / "a")


def test_more_than_two_gigabytes_are_a_length(tmp_path):
    size = 0x80000000
    with (tmp_path / "a").open("wb") as file:
        file.write(wav(SAMPLES[:0], size))
        file.truncate(file.tell() + size)  # a hole
    assert data_size(tmp_path / "a")[:2] == (size, size)


@pytest.mark.parametrize("length", [0x3FFFFFFF, 10**9, 2 * SIZE + 2, 2 * SIZE + 4444])
def test_wav_that_ends_before_its_header_says(every_door, length):
    samples, notes = every_door(wav(SAMPLES, length))
    np.testing.assert_array_equal(samples, SAMPLES)
    assert notes == [f"{2 * SIZE} bytes of samples, its header says {length}; read to the end"]


@pytest.mark.parametrize("length", [2, 1000, 2 * SIZE - 8])
def test_wav_with_more_samples_than_its_header_says(every_door, length):
    samples, notes = every_door(wav(SAMPLES, length))
    np.testing.assert_array_equal(samples, SAMPLES[: length // 2])
    skipped = 2 * SIZE - length
    assert notes == [
        f"its header says {length} bytes of samples; {skipped} bytes after them, which are no chunks, were skipped"
    ]


@pytest.mark.parametrize("form", ["W64", "RF64", "AIFF", "CAF", "AU"])
def test_other_formats_with_more_samples_than_their_header_says(tmp_path, form):
    (tmp_path / "a").write_bytes(encoded(form) + SAMPLES.tobytes()[:999])
    notes = []
    samples, _ = read_audio(tmp_path / "a", notes=notes)
    np.testing.assert_array_equal(samples[:SIZE], SAMPLES)
    assert len(notes) == 1
    assert "bytes of samples; 999 bytes after them, which are no chunks, were skipped" in notes[0]


@pytest.mark.parametrize(
    "after", [b"LIST\4\0\0\0abcd", b"LIST\3\0\0\0abc\0id3 \2\0\0\0ab", b"LIST\3\0\0\0abc", b"\0\0\0"]
)
def test_chunks_after_the_samples_are_usual(every_door, after):
    samples, notes = every_door(wav(SAMPLES) + after)
    np.testing.assert_array_equal(samples, SAMPLES)
    assert notes == []


def test_wav_that_ends_within_a_sample(every_door):
    samples, notes = every_door(wav(SAMPLES)[:-5])
    np.testing.assert_array_equal(samples, SAMPLES[:-3])
    assert notes == [f"{2 * SIZE - 5} bytes of samples, its header says {2 * SIZE}; read to the end"]


@pytest.mark.parametrize(
    ("form", "endian"),
    [("AIFF", "FILE"), ("AU", "FILE"), ("AU", "LITTLE"), ("CAF", "FILE"), ("W64", "FILE"), ("RF64", "FILE")],
)
def test_other_formats_that_end_before_their_header_says(every_door, tmp_path, form, endian):
    content = encoded(form, endian=endian)
    samples, notes = every_door(content)
    np.testing.assert_array_equal(samples, SAMPLES)
    assert notes == []
    samples, notes = every_door(content[:-3000])
    np.testing.assert_array_equal(samples, SAMPLES[: len(samples)])
    assert SIZE - 1510 < len(samples) <= SIZE - 1490
    assert len(notes) == 1
    assert notes[0].endswith("; read to the end")
    assert "bytes of samples, its header says" in notes[0]


def test_sphere_that_ends_before_its_header_says(every_door, tmp_path):
    write_sphere(tmp_path / "whole", SAMPLES, RATE)
    samples, notes = every_door((tmp_path / "whole").read_bytes()[:-20])
    np.testing.assert_array_equal(samples, SAMPLES[:-10])
    assert notes == [f"{SIZE - 10} samples, its header says {SIZE}; read to the end"]


def test_flac_without_a_length(every_door, tmp_path):
    samples, notes = every_door(with_length(encoded("FLAC"), 0))
    np.testing.assert_array_equal(samples, SAMPLES)
    assert notes == [NO_LENGTH]
    assert read_audio_header(tmp_path / "a").num_samples == SIZE
    assert audio_seconds(tmp_path / "a") is None
    for first, last in ((0, SIZE), (SIZE - 9, SIZE), (SIZE, None), (SIZE + 9, SIZE + 10)):
        with pytest.raises(FormatError, match="a: "):
            read_audio(tmp_path / "a", first=first, last=last, notes=[])


@pytest.mark.parametrize("cut", [1, 5, 3000, 20_000])
@pytest.mark.parametrize("length", [0, SIZE])
def test_flac_that_is_cut(every_door, cut, length):
    """All blocks before the one that is cut are read."""
    samples, notes = every_door(with_length(encoded("FLAC"), length)[:-cut])
    np.testing.assert_array_equal(samples, SAMPLES[: len(samples)])
    assert len(samples) > SIZE - 2 * 4096 - cut
    if length:
        assert notes == [f"{len(samples)} samples, its header says {SIZE}; read to the end"]
    else:
        assert notes == [NO_LENGTH, "its last block is cut short and was skipped"]


def test_flac_that_promises_more_than_memory_holds(every_door):
    samples, notes = every_door(with_length(encoded("FLAC"), 2**36 - 1))
    np.testing.assert_array_equal(samples, SAMPLES)
    assert notes == [f"{SIZE} samples, its header says {2**36 - 1}; read to the end"]


@pytest.mark.parametrize("length", [0, SIZE])
@pytest.mark.parametrize("missing", [99, 10_000])
def test_flac_that_is_damaged_before_its_end_is_refused(tmp_path, length, missing):
    content = with_length(encoded("FLAC"), length)
    (tmp_path / "a").write_bytes(content[:30_000] + bytes(99) + content[30_000 + missing :])
    message = r"a: damaged after 1\.\d\d s \(.*\); expected audio that libsndfile can decode"
    with pytest.raises(FormatError, match=message):
        read_audio(tmp_path / "a")


def test_notes_are_warnings_unless_they_are_collected(tmp_path, recwarn):
    (tmp_path / "a").write_bytes(wav(SAMPLES, 0))
    read_audio(tmp_path / "a", notes=[])
    assert len(recwarn) == 0
    with pytest.warns(AudioWarning, match=f"a: {NO_LENGTH}"):
        read_audio(tmp_path / "a")
