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
from recipes.cli.info import describe

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
    kind, figures = describe(str(path))
    assert (kind, dict(figures)["format"]) == ("audio", form)
    with pytest.raises(FormatError, match=rf"a: {form} audio; expected an HTK feature file; argonaut hcopy makes"):
        read_htk(path)
    with pytest.raises(FormatError, match=rf"a: {form} audio; expected a text file, such as a list"):
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
