"""Audio files: every container, the 16-bit scale, every fault."""

import io
import struct

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.audio import sound
from readers.audio.audio_file import read_audio, write_flac, write_sphere, write_wav
from readers.audio.sphere import read_sphere_header
from readers.errors import AudioWarning, ConfigError, FormatError, ShapeError
from readers.htk.parameter_file import USER, WAVEFORM, write_htk

RAMP = np.array([-32768, -1, 0, 1, 2, 32767], np.int16)

# As on the TIMIT disc: no sample_coding, fields of the database first.
TIMIT_HEADER = b"""NIST_1A
   1024
database_id -s5 TIMIT
database_version -s3 1.0
utterance_id -s8 dab0_si1
channel_count -i 1
sample_count -i 6
sample_rate -i 16000
sample_min -i -32768
sample_max -i 32767
sample_n_bytes -i 2
sample_byte_format -s2 01
sample_sig_bits -i 16
end_head
"""


def sphere(header, body, size=1024):
    return header.ljust(size, b" ") + body


def test_wav_gives_its_integers_as_float32(tmp_path):
    soundfile.write(tmp_path / "a.wav", RAMP, 16000, subtype="PCM_16")
    samples, rate = read_audio(tmp_path / "a.wav")
    assert (samples.tolist(), rate) == (RAMP.tolist(), 16000)
    assert samples.dtype == np.float32
    assert samples.flags.c_contiguous


@pytest.mark.parametrize("write", [write_wav, write_sphere, write_flac])
@pytest.mark.parametrize("form", [bytes, bytearray, io.BytesIO])
def test_the_content_of_a_file_may_be_given(tmp_path, write, form):
    write(tmp_path / "a", RAMP, 16000)
    samples, rate = read_audio(form((tmp_path / "a").read_bytes()), first=1, last=3)
    assert (samples.tolist(), rate) == (RAMP[1:4].tolist(), 16000)
    with (tmp_path / "a").open("rb") as file:
        assert read_audio(file)[0].tolist() == RAMP.tolist()


def test_messages_of_libsndfile_end_without_a_stop():
    with pytest.raises(FormatError, match=r"No 'data' chunk marker; expected audio that libsndfile can decode"):
        read_audio(b"RIFF\x0c\0\0\0WAVEjunk\0\0\0\0")


def test_faults_of_content_name_it_and_not_its_copy(tmp_path):
    with pytest.raises(FormatError, match=r"^bytes: empty file; expected audio"):
        read_audio(b"")
    with pytest.raises(FormatError, match=r"^bytes:2: header of 1024 bytes in a file of 500"):
        read_audio(TIMIT_HEADER.ljust(500)[:500])
    write_wav(tmp_path / "a.wav", RAMP, 16000)
    with (tmp_path / "a.wav").open("rb") as file, pytest.raises(FormatError, match=r"/a.wav: channel 1 of 1; expected"):
        read_audio(file, channel=1)
    with pytest.raises(ConfigError, match="bytes: open as text; expected a file that is open in binary mode"):
        read_audio(io.StringIO("a"))
    with pytest.warns(AudioWarning, match="^bytes: 11 bytes of samples, its header says 12; read to the end"):
        read_audio((tmp_path / "a.wav").read_bytes()[:-1])


@pytest.mark.parametrize(
    ("name", "subtype", "expected"),
    [
        ("a.flac", "PCM_16", RAMP.tolist()),
        ("a.aiff", "PCM_16", RAMP.tolist()),
        ("a.wav", "PCM_24", RAMP.tolist()),
        ("a.wav", "FLOAT", RAMP.tolist()),
        ("a.wav", "PCM_U8", [-32768, -256, 0, 0, 0, 32512]),  # the upper byte is all that is kept
    ],
)
def test_other_codings_come_on_the_same_scale(tmp_path, name, subtype, expected):
    soundfile.write(tmp_path / name, RAMP if subtype != "FLOAT" else RAMP / 32768, 8000, subtype=subtype)
    samples, rate = read_audio(tmp_path / name)
    assert (samples.tolist(), rate) == (expected, 8000)


def test_24_bits_keep_what_is_below_one_unit(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.array([1.5 / 32768]), 16000, subtype="PCM_24")
    assert read_audio(tmp_path / "a.wav")[0].tolist() == [1.5]


@pytest.mark.parametrize("order", ["<", ">"])
def test_sphere_of_the_timit_disc(tmp_path, order):
    header = TIMIT_HEADER if order == "<" else TIMIT_HEADER.replace(b"-s2 01", b"-s2 10")
    (tmp_path / "SX1.WAV").write_bytes(sphere(header, RAMP.astype(order + "i2").tobytes()))
    samples, rate = read_audio(tmp_path / "SX1.WAV")
    assert (samples.tolist(), rate) == (RAMP.tolist(), 16000)


def test_what_write_sphere_writes_is_read_by_libsndfile_too(tmp_path):
    write_sphere(tmp_path / "a.sph", RAMP, 16000)
    samples, rate = soundfile.read(tmp_path / "a.sph", dtype="int16")
    assert (samples.tolist(), rate) == (RAMP.tolist(), 16000)
    raw = (tmp_path / "a.sph").read_bytes()
    assert raw.startswith(b"NIST_1A\n   1024\n")
    assert len(raw) == 1024 + 12
    assert read_sphere_header(tmp_path / "a.sph") == {
        "channel_count": 1,
        "sample_count": 6,
        "sample_rate": 16000,
        "sample_min": -32768,
        "sample_max": 32767,
        "sample_n_bytes": 2,
        "sample_byte_format": "01",
        "sample_sig_bits": 16,
        "sample_coding": "pcm",
    }


@pytest.mark.parametrize(("period", "rate"), [(625, 16000), (1250, 8000), (227, 44053)])
def test_htk_waveforms(tmp_path, period, rate):
    write_htk(tmp_path / "a.htk", RAMP[None].astype(np.float32), WAVEFORM, period)
    samples, found = read_audio(tmp_path / "a.htk")
    assert (samples.tolist(), found) == (RAMP.tolist(), rate)
    assert samples.flags.c_contiguous


@settings(max_examples=30, deadline=None)
@given(
    samples=st.lists(st.integers(-32768, 32767), min_size=1, max_size=40),
    rate=st.sampled_from([8000, 11025, 16000, 48000]),
    writer=st.sampled_from([write_wav, write_sphere]),
)
def test_what_is_written_is_read_back(tmp_path_factory, samples, rate, writer):
    path = tmp_path_factory.mktemp("audio") / "a"
    writer(path, np.array(samples, np.float32), rate)
    again, found = read_audio(path)
    assert (again.tolist(), found) == (samples, rate)


def test_writers_round(tmp_path):
    write_wav(tmp_path / "a.wav", np.array([0.6, -1.4, 2.5]), 16000)
    assert read_audio(tmp_path / "a.wav")[0].tolist() == [1, -1, 2]


# --- channels ------------------------------------------------------------------------------------------------------


def test_several_channels_need_a_choice(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.stack([RAMP, RAMP // 2], axis=1), 16000)
    with pytest.raises(
        FormatError,
        match=r"a.wav: 2 channels; expected one; choose it by the option channel",
    ):
        read_audio(tmp_path / "a.wav")
    assert read_audio(tmp_path / "a.wav", channel=1)[0].tolist() == (RAMP // 2).tolist()
    with pytest.raises(FormatError, match=r"a.wav: channel 2 of 2; expected 0 to 1"):
        read_audio(tmp_path / "a.wav", channel=2)
    with pytest.raises(FormatError, match=r"a.wav: channel -1 of 2; expected 0 to 1"):
        read_audio(tmp_path / "a.wav", channel=-1)


# --- faults --------------------------------------------------------------------------------------------------------


def test_an_empty_file(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"")
    with pytest.raises(FormatError, match=r"a.wav: empty file; expected audio"):
        read_audio(tmp_path / "a.wav")


@pytest.mark.parametrize("name", ["a.wav", "a.aiff"])
def test_audio_without_samples(tmp_path, name):
    soundfile.write(tmp_path / name, RAMP[:0], 16000)
    with pytest.raises(FormatError, match=rf"{name}: no samples; expected at least one"):
        read_audio(tmp_path / name)


def test_chunks_before_the_samples_are_passed_over(tmp_path):
    write_wav(tmp_path / "a.wav", RAMP, 16000)
    raw = (tmp_path / "a.wav").read_bytes()
    odd = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    (tmp_path / "a.wav").write_bytes(raw[:36] + odd + raw[36:])
    assert read_audio(tmp_path / "a.wav")[0].tolist() == RAMP.tolist()


@pytest.mark.parametrize("cut", [20, 60])
def test_a_damaged_flac_file(tmp_path, cut):
    soundfile.write(tmp_path / "a.flac", np.random.default_rng(0).integers(-999, 999, 4000).astype(np.int16), 16000)
    (tmp_path / "a.flac").write_bytes((tmp_path / "a.flac").read_bytes()[:cut])
    with pytest.raises(FormatError, match=r"a.flac: .*expected"):
        read_audio(tmp_path / "a.flac")


def test_a_file_of_no_known_format(tmp_path):
    (tmp_path / "a.txt").write_text("hello, this is text\n")
    message = (
        r"a.txt: audio of no known format; expected WAV, .* HTK waveform, .* others; raw samples need the option rate"
    )
    with pytest.raises(FormatError, match=message):
        read_audio(tmp_path / "a.txt")


def test_an_htk_waveform_of_less_than_a_sample_per_second(tmp_path):
    write_htk(tmp_path / "a.htk", RAMP[None].astype(np.float32), WAVEFORM, 20_000_001)
    with pytest.raises(FormatError, match=r"a.htk: audio of no known format.*HTK waveform"):
        read_audio(tmp_path / "a.htk")


def test_codings_in_which_libsndfile_cannot_seek(tmp_path):
    (tmp_path / "a.au").write_bytes(b".snd" + struct.pack(">5I", 24, 2, 26, 16000, 1) + bytes(2))
    samples, rate = read_audio(tmp_path / "a.au")
    assert (len(samples), rate) == (len(soundfile.read(tmp_path / "a.au", 1000)[0]), 16000)


def test_long_silence_is_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(sound, "PIECE", 1000)
    samples = np.zeros(2**19, np.int16)
    samples[-1] = 5
    soundfile.write(tmp_path / "a.flac", samples, 16000)
    assert len(samples) > sound.USUAL_FRAMES * (tmp_path / "a.flac").stat().st_size
    np.testing.assert_array_equal(read_audio(tmp_path / "a.flac")[0], samples)


@pytest.mark.parametrize(("dim", "kind"), [(1, USER), (2, WAVEFORM)])
def test_an_htk_file_of_features_is_no_audio(tmp_path, dim, kind):
    write_htk(tmp_path / "a", np.zeros((dim, 5)), kind)
    with pytest.raises(FormatError, match=r"a: an HTK feature file; expected audio"):
        read_audio(tmp_path / "a")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            (b"sample_sig_bits -i 16", b"sample_coding -s26 pcm,embedded-shorten-v2.00"),
            r"a: SPHERE file with compressed samples \(pcm,embedded-shorten-v2.00\); expected plain pcm, ulaw or alaw; "
            r"decompress it first, for instance with w_decode or sph2pipe",
        ),
        ((b"   1024", b"   102x"), r"a:1: b'NIST_1A'; expected NIST_1A and the header's size on the next line"),
        ((b"   1024", b"   9999"), r"a:2: header of 9999 bytes in a file of 1036; expected it to fit"),
        ((b"end_head\n", b""), r"a: no end_head line in the header of 1024 bytes; expected one"),
        ((b"sample_rate -i 16000", b"sample_rate 16000"), r"a:8: 'sample_rate 16000'; expected name, -i, -r or -sN"),
        ((b"-i 16000", b"-i fast"), r"a:8: 'sample_rate -i fast'; expected name, -i, -r or -sN, and a value"),
        ((b"-i 16000", b"-x 16000"), r"a:8: 'sample_rate -x 16000'; expected name"),
        ((b"sample_count -i 6", b"sample_count -i 5"), r"a: 6 samples; expected 5, as its header says"),
    ],
)
def test_sphere_headers_that_cannot_be_read(tmp_path, change, message):
    assert change[0] in TIMIT_HEADER
    (tmp_path / "a").write_bytes(sphere(TIMIT_HEADER.replace(*change), RAMP.tobytes()))
    with pytest.raises(FormatError, match=message):
        read_audio(tmp_path / "a")


def test_sphere_header_takes_reals_and_comments(tmp_path):
    header = TIMIT_HEADER.replace(b"end_head", b"; a comment\nsnr -r 35.5\nend_head")
    (tmp_path / "a").write_bytes(sphere(header, RAMP.tobytes()))
    assert read_sphere_header(tmp_path / "a")["snr"] == 35.5


@pytest.mark.parametrize("writer", [write_wav, write_sphere])
@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros((2, 3)), r"a: samples of shape \(2, 3\); expected one channel, \(N,\)"),
        (np.array([0, 40000.0]), r"a: samples from 0 to 40000; expected -32768 to 32767; scale them first"),
        (np.array([np.nan]), r"a: samples from nan to nan; expected -32768 to 32767"),
    ],
)
def test_samples_that_cannot_be_written(tmp_path, writer, samples, message):
    with pytest.raises(ShapeError, match=message):
        writer(tmp_path / "a", samples, 16000)
    assert not list(tmp_path.iterdir())
