"""Parts of audio files: names, samples, faults; and headers."""

import numpy as np
import pytest
import soundfile

from readers.audio import AudioHeader, AudioPart, RawFormat, audio_part, read_audio, read_audio_header
from readers.audio.audio_file import write_sphere
from readers.errors import FormatError
from readers.htk.parameter_file import WAVEFORM, write_htk

SAMPLES = (np.arange(9000) * 7 % 20011 - 10000).astype(np.int16)
STEREO = np.stack([SAMPLES, -SAMPLES], axis=1)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.wav", AudioPart("a.wav")),
        ("a.wav[5,90]", AudioPart("a.wav", 5, 90)),
        ("a[1].wav[0,0,1]", AudioPart("a[1].wav", 0, 0, 1)),
        ("a.wav[5]", AudioPart("a.wav[5]")),
        ("[1,2]", AudioPart("[1,2]")),
    ],
)
def test_names(name, expected):
    assert audio_part(name) == expected


def test_a_file_with_such_a_name_is_a_file(tmp_path):
    path = tmp_path / "take[1,2]"
    path.write_bytes(b"x")
    assert audio_part(path) == AudioPart(str(path))
    with pytest.raises(FormatError, match=r"a.wav\[3,2\]: samples \[3,2\]; expected first <= last"):
        audio_part("a.wav[3,2]")


@pytest.fixture(params=["wav", "flac", "ogg", "mp3", "sph", "htk", "raw", "float"])
def recording(request, tmp_path):
    """A file of SAMPLES in one channel, with its raw format."""
    path, raw = tmp_path / f"a.{request.param}", None
    if request.param == "sph":
        write_sphere(path, SAMPLES, 16000)
    elif request.param == "htk":
        write_htk(path, SAMPLES[None], WAVEFORM, 625)
    elif request.param == "raw":
        path.write_bytes(SAMPLES.tobytes())
        raw = RawFormat(16000)
    elif request.param == "float":
        path = path.with_suffix(".wav")
        soundfile.write(path, SAMPLES / 32768, 16000, subtype="FLOAT")
    else:
        soundfile.write(path, SAMPLES, 16000)
    return path, raw


@pytest.mark.parametrize(("first", "last"), [(0, 99), (4000, 7999), (8000, None), (0, 0)])
def test_a_part_equals_that_part_of_the_whole(recording, first, last):
    path, raw = recording
    whole, rate = read_audio(path, raw=raw)
    part, same = read_audio(path, raw=raw, first=first, last=last)
    assert same == rate
    np.testing.assert_array_equal(part, whole[first : None if last is None else last + 1])


def test_a_part_of_one_channel(tmp_path):
    soundfile.write(tmp_path / "a.flac", STEREO, 16000)
    np.testing.assert_array_equal(read_audio(tmp_path / "a.flac", 1, first=10, last=19)[0], -SAMPLES[10:20])
    with pytest.raises(FormatError, match="channel 2 of 2"):
        read_audio(tmp_path / "a.flac", 2, first=10, last=19)


def test_only_the_part_is_decoded(tmp_path, monkeypatch):
    soundfile.write(tmp_path / "a.wav", SAMPLES, 16000)
    read = []
    original = soundfile.SoundFile.read
    monkeypatch.setattr(soundfile.SoundFile, "read", lambda *a, **k: read.append(len(k["out"])) or original(*a, **k))
    read_audio(tmp_path / "a.wav", first=100, last=149)
    assert read == [50]


def test_parts_that_the_file_does_not_have(recording):
    path, raw = recording
    for first, last in ((0, 20000), (20000, None), (20000, 20001)):
        with pytest.raises(FormatError, match=rf"samples \[{first},\d+\] of \d+; expected a part of the file"):
            read_audio(path, raw=raw, first=first, last=last)


def test_headers(recording):
    path, raw = recording
    if raw:
        with pytest.raises(FormatError, match="no audio of a known format"):
            read_audio_header(path)
        return
    header = read_audio_header(path)
    assert header == AudioHeader(16000, 1, len(read_audio(path)[0]))
    assert header.seconds == header.num_samples / 16000


def test_headers_of_other_files(tmp_path):
    soundfile.write(tmp_path / "empty.wav", SAMPLES[:0], 16000)
    with pytest.raises(FormatError, match=r"empty.wav: no samples; expected at least one"):
        read_audio_header(tmp_path / "empty.wav")
    write_htk(tmp_path / "a.mfc", np.zeros((3, 4)), 6, 100000)
    with pytest.raises(FormatError, match=r"a.mfc: no audio of a known format"):
        read_audio_header(tmp_path / "a.mfc")
