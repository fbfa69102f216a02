"""MP3 files: what is there is read, and nothing is printed."""

import numpy as np
import pytest
import soundfile

from readers.audio.audio_file import read_audio
from readers.audio.mpeg import _silence_incomplete, mpeg_audio
from readers.common.audio_format import audio_format, mpeg_frame_size
from readers.errors import FormatError

RATE, SIZE = 16000, 32000
ID3 = b"ID3\x03\0\0\0\0\x01\x05" + bytes(128 + 5)
DELAY = 529  # samples that the decoder removes after a header that says nothing about the encoder's own
FRAME = 576


def split(data):
    """The frames of MPEG audio."""
    found = []
    while data:
        size = mpeg_frame_size(data[:4])
        found.append(data[:size])
        data = data[size:]
    return found


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """The frames of an MP3 file with a variable bitrate, whose first contains their number."""
    path = tmp_path_factory.mktemp("mp3") / "a"
    noise = np.random.default_rng(0).normal(size=SIZE) * np.linspace(0, 0.2, SIZE)
    soundfile.write(path, noise, RATE, format="MP3")
    found = split(path.read_bytes())
    assert len({len(frame) for frame in found}) > 2
    return found


@pytest.fixture(scope="module")
def decoded(tmp_path_factory, frames):
    """The samples of the whole file."""
    path = tmp_path_factory.mktemp("mp3") / "a"
    path.write_bytes(b"".join(frames))
    return read_audio(path)[0]


@pytest.mark.parametrize("begin", [b"", ID3, 2 * ID3])
@pytest.mark.parametrize("end", [b"", b"TAG" + bytes(125), b"APETAGEX" + bytes(50), bytes(700), b"\xff\xf3"])
def test_whole_files_with_tags_are_read(tmp_path, capfd, frames, begin, end):
    (tmp_path / "a").write_bytes(begin + b"".join(frames) + end)
    assert SIZE - 8 * FRAME <= mpeg_audio(tmp_path / "a").least <= SIZE
    samples, rate = read_audio(tmp_path / "a")
    assert (len(samples), rate) == (SIZE, RATE)
    if begin in (b"", ID3) and end == b"":
        assert capfd.readouterr().err == ""


def test_files_put_together_are_read(tmp_path, frames):
    audio = b"".join(frames[1:])  # without the number of frames
    (tmp_path / "a").write_bytes(ID3 + audio + ID3 + audio)
    assert mpeg_audio(tmp_path / "a").least == FRAME * (2 * len(frames) - 2 - 8)
    assert len(read_audio(tmp_path / "a")[0]) == FRAME * (2 * len(frames) - 2) - DELAY


@pytest.mark.parametrize("junk", [b"x" * 26, bytes(1024), b"\xff\xfb\x90\x64 is no frame", b"\xff" * 3000])
def test_bytes_before_the_first_frame_are_skipped(every_door, frames, decoded, junk):
    samples, notes = every_door(junk + b"".join(frames))
    np.testing.assert_array_equal(samples, decoded)
    assert notes == [f"{len(junk)} bytes before the first MPEG frame were skipped"]


def test_bytes_after_tags_are_skipped(every_door, frames, decoded):
    samples, notes = every_door(ID3 + bytes(99) + b"".join(frames))
    np.testing.assert_array_equal(samples, decoded)
    assert notes == ["99 bytes before the first MPEG frame were skipped"]


@pytest.mark.parametrize("cut", [1, 17, 30])
def test_a_stream_that_begins_inside_a_frame(every_door, frames, decoded, cut):
    """Frames whose data begin before them are silent, and the others are those of the whole stream."""
    rest = frames[cut][len(frames[cut]) // 2 :]
    samples, notes = every_door(rest + b"".join(frames[cut + 1 :]))
    assert notes[0] == f"{len(rest)} bytes before the first MPEG frame were skipped"
    assert len(samples) == FRAME * (len(frames) - cut - 1) - DELAY
    # Less than all silent frames and the overlap with the one before differ; the encoder's own delay is not removed.
    skipped = FRAME * 6
    whole = decoded[(cut + 6) * FRAME - 1105 + DELAY :][: len(samples) - skipped]
    np.testing.assert_allclose(samples[skipped:][: len(whole)], whole, atol=1)
    assert len(whole) > SIZE // 3


def test_variable_bitrate_without_its_header(every_door, frames, decoded):
    samples, notes = every_door(b"".join(frames[1:]))
    assert len(samples) == FRAME * (len(frames) - 1) - DELAY
    np.testing.assert_allclose(samples[1105 - DELAY :][: len(decoded)], decoded, atol=1)
    assert notes == []


def test_another_header_is_replaced(every_door, frames):
    """The header of Fraunhofer's encoder is no frame of audio."""
    samples, notes = every_door(frames[0].replace(b"Xing", b"VBRI") + b"".join(frames[1:]))
    np.testing.assert_array_equal(samples, every_door(b"".join(frames[1:]))[0])
    assert notes == []


def test_silent_frames_keep_the_data_of_the_frames_after_them():
    """A frame's data may begin in any frame before it, if all frames between say that theirs begin as far back."""
    header = b"\xff\xf3\x18\xc4"  # 16 kHz, mono: 9 bytes follow of which the first says how far back the data begin
    wanted = (255, 200, 90, 80, 255)
    frames = [header + bytes([begin]) + bytes(8) + bytes([begin] * 40) for begin in wanted]
    assert _silence_incomplete(frames) == 3
    assert [frame[4] for frame in frames] == [0, 40, 80, 80, 255]
    assert [frame[13:] for frame in frames] == [bytes([begin] * 40) for begin in wanted]


@pytest.mark.parametrize(("keep", "notes"), [(1, []), (30, ["30 bytes after the last whole MPEG frame were skipped"])])
def test_a_last_frame_that_is_cut(every_door, frames, decoded, keep, notes):
    samples, found = every_door(b"".join(frames[:-1]) + frames[-1][:keep])
    np.testing.assert_array_equal(samples[: SIZE - 2 * FRAME], decoded[: SIZE - 2 * FRAME])
    assert SIZE - 2 * FRAME <= len(samples) < SIZE
    assert found == notes


def test_a_file_that_ends_before_its_header_says(every_door, frames, decoded):
    samples, notes = every_door(b"".join(frames[:31]))
    np.testing.assert_array_equal(samples[: 27 * FRAME], decoded[: 27 * FRAME])
    assert notes == [f"30 MPEG frames, its header says {len(frames) - 1}; read to the end"]


def test_bytes_after_the_last_frame_are_skipped(every_door, frames, decoded):
    samples, notes = every_door(b"".join(frames) + b"<html>not found</html>")
    np.testing.assert_array_equal(samples, decoded)
    assert notes == ["22 bytes after the last whole MPEG frame were skipped"]


def test_other_data_are_not_mistaken_for_frames():
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert audio_format(b"\0" + rng.bytes(8000)) is None
    assert audio_format(b"\xff" * 8192) is None
    frame = b"\xff\xf3\x18\xc4".ljust(mpeg_frame_size(b"\xff\xf3\x18\xc4"), b"\0")
    assert audio_format(2 * frame) == "MP3"
    assert audio_format(b"x" + 2 * frame) is None
    assert audio_format(b"x" + 3 * frame) == "MP3"


@pytest.mark.parametrize(
    "damage",
    [
        lambda f: [*f[:9], b"\0" + f[9][1:], *f[10:]],
        lambda f: [*f[:9], f[9][:30], *f[10:]],
        lambda f: [*f[:9], f[9] + b"x", *f[10:]],
        lambda f: [*f[:9], bytes([f[9][0], f[9][1] ^ 8]) + f[9][2:], *f[10:]],
    ],
)
def test_damage_between_frames_is_refused_and_nothing_is_printed(tmp_path, capfd, frames, damage):
    (tmp_path / "a").write_bytes(b"".join(damage(list(frames))))
    with pytest.raises(FormatError, match=r"a: no MPEG frame at byte \d+; expected frames without a gap"):
        read_audio(tmp_path / "a")
    assert capfd.readouterr().err == ""


def test_what_only_begins_like_mp3_is_left_to_the_decoder(tmp_path):
    (tmp_path / "a").write_bytes(ID3 + b"something else" * 100)
    assert mpeg_audio(tmp_path / "a").least == 0
    with pytest.raises(FormatError, match="expected audio that libsndfile can decode"):
        read_audio(tmp_path / "a")
