"""Audio files, and the configurations of HCopy, which are used on noise."""

import contextlib
import io
import random
import struct
import sys

import numpy as np

from features.config import FeatureConfig
from features.extraction import extract
from readers.audio.audio_file import read_audio, write_sphere, write_wav
from readers.audio.audio_stream import open_audio
from readers.audio.duration import audio_seconds
from readers.audio.header import read_audio_header
from readers.audio.raw import ENCODINGS, PCM_16, RawFormat
from readers.audio.resampling import Resampler
from readers.common.audio_format import mpeg_frame_size
from readers.config.hcopy import read_hcopy_config
from readers.errors import FormatError, ShapeError
from readers.htk.parameter_file import WAVEFORM, write_htk
from tests.fuzz.format import Format, text, written

FBANK = FeatureConfig.from_hcopy({"TARGETKIND": "FBANK_E_D", "NUMCHANS": "8"})
MOST_SAMPLES = 4000


def samples(rng: random.Random) -> np.ndarray:
    time = np.arange(rng.choice((1, 200, 900, 9000)))
    return np.round(3000 * np.sin(time * rng.uniform(0.01, 1.0))).astype(np.float32)


def features_of(found: np.ndarray, rate: int) -> None:
    """Compute features of the beginning of audio; there may be too few samples for a window."""
    with contextlib.suppress(ShapeError):
        extract(found[:MOST_SAMPLES], FBANK, rate)


def listen(path) -> None:
    """Read audio, whole, in blocks and its header, and compute features of its beginning."""
    audio_seconds(path)
    found, rate = read_audio(path, notes=[])
    read_audio_header(path)
    features_of(found, rate)
    stream = open_audio(path, 256)
    for _, _block in zip(range(20), stream.blocks):
        pass


def listen_pipe(path) -> None:
    """Read audio in a pipe, all channels mixed, and resample its beginning."""
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(path.read_bytes()))
    try:
        stream = open_audio("-", 256, channel="mix")
        blocks = [block for _, block in zip(range(20), stream.blocks)]
    finally:
        sys.stdin = stdin
    resampler = Resampler(stream.rate, 16000)
    for block in blocks:
        resampler.push(block)
    resampler.finish()


def listen_raw(path) -> None:
    for encoding in sorted(ENCODINGS, key=lambda name: name == PCM_16):
        try:
            found, rate = read_audio(path, raw=RawFormat(16000, encoding), notes=[])
        except FormatError:  # half a sample at the end
            if encoding == PCM_16:
                raise
            continue
        features_of(found, rate)


def sndfile(form: str, subtype: str, channels: int = 1):
    """A seed that libsndfile writes."""

    def write(path, rng):
        import soundfile

        sound = np.repeat(samples(rng)[:, None] / 32768, channels, axis=1)
        soundfile.write(path, sound, rng.choice((8000, 16000, 44100)), subtype=subtype, format=form)

    return written(write)


def riff_sizes(content: bytes, rng: random.Random) -> bytes:
    """Change a field of the format chunk, or the size of a chunk."""
    place, kind = rng.choice(
        ((4, "<I"), (16, "<I"), (20, "<H"), (22, "<H"), (24, "<I"), (28, "<I"), (32, "<H"), (40, "<I"))
    )
    value = rng.choice((0, 1, 2, 3, 16, 17, 0x7FFF, 0xFFFF, 0x7FFFF000, 0x7FFFFFFF, 0xFFFFFFFF, len(content), 0xFFFE))
    return (
        content[:place]
        + struct.pack(kind, value & (0xFFFF if kind == "<H" else 0xFFFFFFFF))
        + content[place + struct.calcsize(kind) :]
    )


def endless(content: bytes, rng: random.Random) -> bytes:
    """Give the samples of WAV the size that programs write which do not know it."""
    at = content.find(b"data") + 4
    size = rng.choice((0, 0x3FFFFFFF, 10**9, 0x7FFFF000, 2**32 - 1))
    return content[:at] + struct.pack("<I", size) + content[at + 4 :]


def uncounted(content: bytes, rng: random.Random) -> bytes:
    """Give FLAC another number of samples, mostly none."""
    number = rng.choice((0, 0, 1, 2**36 - 1))
    digits = bytes([content[21] & 0xF0 | number >> 32]) + struct.pack(">I", number & 2**32 - 1)
    return content[:21] + digits + content[26:]


def cut(content: bytes, rng: random.Random) -> bytes:
    """Cut bytes off the end, few or many, and sometimes off the beginning."""
    begin = rng.choice((0, 0, rng.randrange(len(content))))
    return content[begin : len(content) - rng.choice((1, 2, 3, rng.randrange(len(content))))]


def surrounded(content: bytes, rng: random.Random) -> bytes:
    """Put other bytes before and behind."""
    tags = (b"TAG" + bytes(125), b"ID3\3\0\0\0\0\1\5")
    other = (b"", bytes(1024), b"\xff\xfb\x90\x64", b"\xff" * 100, rng.randbytes(26), *tags)
    return rng.choice(other) + cut(content, rng) + rng.choice(other)


def without_first_frame(content: bytes, rng: random.Random) -> bytes:
    """Remove the frame of MP3 that contains the number of frames, and sometimes bytes after it."""
    return content[mpeg_frame_size(content[:4]) + rng.choice((0, 0, 1, 500)) :]


def more_chunks(content: bytes, rng: random.Random) -> bytes:
    """Put chunks of odd sizes before the samples."""
    chunk = (
        rng.choice((b"LIST", b"fmt ", b"data", b"\0\0\0\0"))
        + struct.pack("<I", rng.choice((0, 1, 4, 2**31, 2**32 - 1)))
        + b"x" * 4
    )
    return content[:36] + chunk * rng.choice((1, 2, 5000)) + content[36:]


def hcopy_config(path) -> None:
    """Read a configuration, and compute features of noise with it if that is not much work."""
    config = FeatureConfig.from_hcopy(read_hcopy_config(path))
    noise = np.random.default_rng(0).normal(0, 1000, 1600).astype(np.float32)
    if config.num_channels <= 1000 and config.dim <= 3000:
        extract(noise, config, 16000)


HCOPY = (
    "TARGETKIND = FBANK_D_A_Z\nNUMCHANS = 24\nTARGETRATE = 100000.0\nWINDOWSIZE = 250000.0\nUSEHAMMING = T\n"
    "PREEMCOEF = 0.97\n",
    "# comment\nHPARM: TARGETKIND = MFCC_E_D_A_C_K\nNUMCHANS = 20\nNUMCEPS = 12\nCEPLIFTER = 22\nENORMALISE = T\n"
    "SILFLOOR = 50\n"
    "ESCALE = 0.1\nDELTAWINDOW = 2\nACCWINDOW = 2\nSOURCERATE = 625\nSOURCEFORMAT = WAV\nBYTEORDER = VAX\n",
    "TARGETKIND = PLP_0_D_Z\nNUMCHANS = 18\nNUMCEPS = 12\nLPCORDER = 12\nUSEPOWER = T\nLOFREQ = 100\nHIFREQ = 3800\n"
    "COMPRESSFACT = 0.33\nWARPFREQ = 1.1\nWARPLCUTOFF = 300\nWARPUCUTOFF = 3000\nZMEANSOURCE = T\nADDDITHER = 1.0\n",
    "TARGETKIND = MELSPEC\nNUMCHANS = 10\nTARGETRATE = 200000\nWINDOWSIZE = 400000\nRAWENERGY = F\nSIMPLEDIFFS = T\n",
)

FORMATS = (
    Format(
        "wav", written(lambda path, rng: write_wav(path, samples(rng), 16000)), listen, (riff_sizes, more_chunks), True
    ),
    Format("wav of floats", sndfile("WAV", "FLOAT"), listen, (riff_sizes,), True),
    Format("wav of mu-law", sndfile("WAV", "ULAW"), listen, (riff_sizes,), True),
    Format("wav without a length", sndfile("WAV", "PCM_16"), listen, (endless, riff_sizes, cut), True),
    Format("flac", sndfile("FLAC", "PCM_16"), listen, (uncounted, cut), True),
    Format("mp3", sndfile("MP3", "MPEG_LAYER_III"), listen, (surrounded, without_first_frame, cut), True),
    Format("mp3 in a pipe", sndfile("MP3", "MPEG_LAYER_III", 2), listen_pipe, (surrounded, without_first_frame), True),
    Format("wav in a pipe", sndfile("WAV", "PCM_24", 3), listen_pipe, (riff_sizes, more_chunks, endless, cut), True),
    Format("flac in a pipe", sndfile("FLAC", "PCM_16", 2), listen_pipe, (uncounted, cut), True),
    Format("aiff", sndfile("AIFF", "PCM_16"), listen, (cut,), True),
    Format("au", sndfile("AU", "PCM_16"), listen, (cut,), True),
    Format("caf", sndfile("CAF", "PCM_16"), listen, (cut,), True),
    Format("wave64", sndfile("W64", "PCM_16"), listen, (cut,), True),
    Format("rf64", sndfile("RF64", "PCM_16"), listen, (cut,), True),
    Format("ogg", sndfile("OGG", "VORBIS"), listen, (), True),
    Format("sphere", written(lambda path, rng: write_sphere(path, samples(rng), 16000)), listen, (cut,), True),
    Format("sphere header", written(lambda path, rng: write_sphere(path, samples(rng), 16000)), listen),
    Format(
        "htk waveform", written(lambda path, rng: write_htk(path, samples(rng)[None], WAVEFORM, 625)), listen, (), True
    ),
    Format("raw samples", lambda rng, directory: samples(rng).astype("<f4").tobytes(), listen_raw, (), True),
    Format("hcopy configuration", text(*HCOPY), hcopy_config),
)
