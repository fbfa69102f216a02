"""Audio files are recognised by their first bytes, wherever they are given."""

import numpy as np
import pytest
import soundfile

from readers.audio.audio_file import read_audio
from readers.audio.audio_stream import open_audio
from readers.common.audio_format import MAGIC, audio_format
from readers.common.text import read_lines
from readers.errors import FormatError
from readers.htk.parameter_file import WAVEFORM, read_htk, write_htk
from recipes.file_kinds import describe_file

RATE = 16000
# Name of the format in libsndfile -> ours.
FORMATS = {
    "WAV": "WAV",
    "RF64": "WAV",
    "W64": "Wave64",
    "FLAC": "FLAC",
    "AIFF": "AIFF",
    "AU": "AU",
    "OGG": "Ogg",
    "CAF": "CAF",
    "NIST": "NIST SPHERE",
    "VOC": "VOC",
    "MP3": "MP3",
}


def tone(seconds=1.0):
    return 0.5 * np.sin(0.2 * np.arange(int(seconds * RATE)))


@pytest.fixture(params=FORMATS)
def form(request, tmp_path):
    soundfile.write(tmp_path / "a", tone(), RATE, format=request.param)
    return FORMATS[request.param]


def test_every_reader_recognises_a_format(form, tmp_path):
    path = tmp_path / "a"
    kind, figures = describe_file(str(path))
    assert (kind, dict(figures)["format"]) == ("audio", form)
    with pytest.raises(FormatError, match=rf"a: {form} audio; expected an HTK feature file; argonaut hcopy makes"):
        read_htk(path)
    with pytest.raises(FormatError, match=rf"a: {form} audio; expected a text file"):
        read_lines(path)


def test_every_format_is_read(form, tmp_path):
    samples, rate = read_audio(tmp_path / "a")
    assert rate == RATE
    assert abs(len(samples) - RATE) < 2400  # MP3 adds silence
    assert 15000 < samples[5000:10000].max() < 17500
    blocks = list(open_audio(tmp_path / "a", 1000).blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), samples)


@pytest.mark.parametrize("magic", MAGIC)
def test_text_that_begins_like_audio_is_text(magic, tmp_path):
    (tmp_path / "a").write_bytes(magic + b" is the first word\n")
    assert read_lines(tmp_path / "a") == [f"{magic.decode()} is the first word"]


def test_a_little_endian_waveform_is_not_taken_for_mp3(tmp_path):
    """Its number of samples begins like the header of an MPEG frame."""
    num_samples = 0x10FBFF
    samples = np.zeros((1, num_samples), np.float32)
    write_htk(tmp_path / "a", samples, WAVEFORM, 625, byte_order="<")
    head = (tmp_path / "a").read_bytes()[:8192]
    assert head[:4] == b"\xff\xfb\x10\0"
    assert audio_format(head) is None
    assert len(read_audio(tmp_path / "a")[0]) == num_samples


# kbit/s of MPEG audio, index 1 to 14: ISO/IEC 11172-3, 2.4.2.3, and 13818-3, 2.4.2.3.
KILOBITS = {
    ("11", 1): "32 64 96 128 160 192 224 256 288 320 352 384 416 448",
    ("11", 2): "32 48 56 64 80 96 112 128 160 192 224 256 320 384",
    ("11", 3): "32 40 48 56 64 80 96 112 128 160 192 224 256 320",
    ("10", 1): "32 48 56 64 80 96 112 128 144 160 176 192 224 256",
    ("10", 2): "8 16 24 32 40 48 56 64 80 96 112 128 144 160",
    ("10", 3): "8 16 24 32 40 48 56 64 80 96 112 128 144 160",
}
HERTZ = {"11": (44100, 48000, 32000), "10": (22050, 24000, 16000), "00": (11025, 12000, 8000)}
SAMPLES = {1: 384, 2: 1152, 3: 1152}  # of a frame; half as many in layer 3 of MPEG 2


@pytest.mark.parametrize("version", HERTZ)
@pytest.mark.parametrize("layer", SAMPLES)
def test_mpeg_frames_of_every_bitrate_and_rate_follow_each_other_at_the_right_distance(version, layer):
    samples = 576 if layer == 3 and version != "11" else SAMPLES[layer]
    for bitrate, kilobits in enumerate(map(int, KILOBITS[max(version, "10"), layer].split()), 1):
        for rate, hertz in enumerate(HERTZ[version]):
            for padding in (0, 1):
                header = int(
                    f"11111111 111{version}{4 - layer:02b}1 {bitrate:04b}{rate:02b}{padding}0".replace(" ", ""), 2
                )
                if layer == 1:  # counted in slots of four bytes
                    size = 4 * (12 * 1000 * kilobits // hertz + padding)
                else:
                    size = samples // 8 * 1000 * kilobits // hertz + padding
                frame = header.to_bytes(3, "big") + b"\0"
                assert audio_format(frame.ljust(size, b"\0") + frame) == "MP3"
                for wrong in (size - 1, size + 1):
                    assert audio_format(frame.ljust(wrong, b"\0") + frame) is None


def test_reserved_values_are_no_mpeg_frame():
    good = 0b11111111_11111011_10010000_00000000  # MPEG 1, layer 3, 128 kbit/s, 44100 Hz: 417 bytes
    frame = good.to_bytes(4, "big")
    assert audio_format(frame.ljust(417, b"\0") + frame) == "MP3"
    assert audio_format(frame) is None
    for cleared, set_bits in ((0x1 << 21, 0), (0x3 << 19, 0x1 << 19), (0x3 << 17, 0), (0xF << 12, 0), (0, 0xF << 12)):
        head = (good & ~cleared | set_bits).to_bytes(4, "big")
        assert audio_format((head.ljust(417, b"\0") + head) * 3) is None
    head = (good | 3 << 10).to_bytes(4, "big")
    assert audio_format((head.ljust(417, b"\0") + head) * 3) is None
