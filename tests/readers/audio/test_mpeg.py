"""Damaged MP3 files are refused, and nothing is printed."""

import numpy as np
import pytest
import soundfile

from readers.audio.audio_file import read_audio
from readers.audio.mpeg import least_samples
from readers.common.audio_format import mpeg_frame_size
from readers.errors import FormatError

RATE, SIZE = 16000, 32000
ID3 = b"ID3\x03\0\0\0\0\x01\x05" + bytes(128 + 5)


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """The frames of an MP3 file with a variable bitrate, whose first contains their number."""
    path = tmp_path_factory.mktemp("mp3") / "a"
    noise = np.random.default_rng(0).normal(size=SIZE) * np.linspace(0, 0.2, SIZE)
    soundfile.write(path, noise, RATE, format="MP3")
    data, found = path.read_bytes(), []
    while data:
        size = mpeg_frame_size(data[:4])
        found.append(data[:size])
        data = data[size:]
    assert len({len(frame) for frame in found}) > 2
    return found


@pytest.mark.parametrize("begin", [b"", ID3, 2 * ID3])
@pytest.mark.parametrize("end", [b"", b"TAG" + bytes(125), b"APETAGEX" + bytes(50), bytes(700), b"\xff\xf3"])
def test_whole_files_with_tags_are_read(tmp_path, capfd, frames, begin, end):
    (tmp_path / "a").write_bytes(begin + b"".join(frames) + end)
    assert SIZE - 8 * 576 <= least_samples(tmp_path / "a") <= SIZE
    samples, rate = read_audio(tmp_path / "a")
    assert (len(samples), rate) == (SIZE, RATE)
    if begin in (b"", ID3) and end == b"":
        assert capfd.readouterr().err == ""


def test_files_put_together_are_read(tmp_path, frames):
    audio = b"".join(frames[1:])  # without the number of frames
    (tmp_path / "a").write_bytes(ID3 + audio + ID3 + audio)
    assert least_samples(tmp_path / "a") == 576 * (2 * len(frames) - 2 - 8)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: [*f[:9], b"\0" + f[9][1:], *f[10:]], "a: no MPEG frame at byte {9}; expected frames without a gap"),
        (lambda f: [*f[:9], f[9][:30], *f[10:]], "a: no MPEG frame at byte"),
        (lambda f: [*f[:9], f[9] + b"x", *f[10:]], "a: no MPEG frame at byte {10}"),
        (lambda f: [*f[:9], bytes([f[9][0], f[9][1] ^ 8]) + f[9][2:], *f[10:]], "a: no MPEG frame at byte {9}"),
        (lambda f: f[:30], "a: truncated, 30 MPEG frames; expected {n}, as its header says"),
        (
            lambda f: f[1:],
            r"a: \d+ samples decoded; expected at least \d+, as many as its MPEG frames have; convert it",
        ),
    ],
)
def test_damage_is_refused_and_nothing_is_printed(tmp_path, capfd, frames, damage, message):
    (tmp_path / "a").write_bytes(b"".join(damage(list(frames))))
    ends = np.cumsum([0, *map(len, frames)])
    message = message.replace("{9}", str(ends[9])).replace("{10}", str(ends[10]))
    with pytest.raises(FormatError, match=message.replace("{n}", str(len(frames) - 1))):
        read_audio(tmp_path / "a")
    assert capfd.readouterr().err == ""


def test_what_only_begins_like_mp3_is_left_to_the_decoder(tmp_path):
    (tmp_path / "a").write_bytes(ID3 + b"something else" * 100)
    assert least_samples(tmp_path / "a") == 0
    with pytest.raises(FormatError, match="expected audio that libsndfile can decode"):
        read_audio(tmp_path / "a")
