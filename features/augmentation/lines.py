"""What a telephone line and a bad level do to speech: band, codec and clipping."""

import io

import numpy as np

from readers.audio.resampling import resample
from readers.common.arrays import Float32Array

LINE_RATE = 8000  # Hz
BAND, EDGE = (300.0, 3400.0), 100.0  # Hz; half of the width of the slopes
CODECS = {"mulaw": "ULAW", "alaw": "ALAW", "gsm": "GSM610", "pcm": "PCM_16"}
FULL_SCALE = 32768.0


def through_telephone(samples: Float32Array, rate: int, codec: str) -> Float32Array:
    """Return speech as it comes out of a telephone, 300 to 3400 Hz, or of a recorder at 8 kHz.

    Parameters
    ----------
    samples : (N,) array
        On the scale of 16-bit integers.
    rate : int
        Sample rate in Hz.
    codec : {"mulaw", "alaw", "gsm", "pcm"}
        G.711 or GSM 06.10, or 16 bits of everything below 4 kHz.

    Returns
    -------
    (N,) float32
        At the rate of the speech, not delayed.
    """
    narrow = samples if rate == LINE_RATE else resample(samples, rate, LINE_RATE)
    if not len(narrow):  # shorter than a sample of the line
        return np.zeros(len(samples), np.float32)
    decoded = coded(narrow if codec == "pcm" else band_limited(narrow, LINE_RATE), codec)
    wide = decoded if rate == LINE_RATE else resample(decoded, LINE_RATE, rate)
    return np.pad(wide, (0, max(0, len(samples) - len(wide))))[: len(samples)].astype(np.float32)


def band_limited(samples: Float32Array, rate: int) -> Float32Array:
    """Return samples (N,) without what is below 300 and above 3400 Hz; the slopes are 200 Hz wide."""
    size = 2 * len(samples)  # no wrap around the ends
    frequency = np.fft.rfftfreq(size, 1 / rate)
    low, high = ((sign * (frequency - edge)) / (2 * EDGE) + 0.5 for sign, edge in zip((1, -1), BAND))
    gain = np.prod([np.sin(np.pi / 2 * np.clip(slope, 0, 1)) ** 2 for slope in (low, high)], axis=0)
    return np.fft.irfft(np.fft.rfft(samples, size) * gain, size)[: len(samples)].astype(np.float32)


def coded(samples: Float32Array, codec: str) -> Float32Array:
    """Return samples (N,), on the scale of 16-bit integers, at 8 kHz, after a codec."""
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, np.clip(samples / FULL_SCALE, -1, 1 - 1 / FULL_SCALE), LINE_RATE, CODECS[codec], format="WAV")
    file.seek(0)
    decoded = soundfile.read(file, dtype="float32")[0] * np.float32(FULL_SCALE)
    return np.pad(decoded, (0, max(0, len(samples) - len(decoded))))[: len(samples)]


def clipped(samples: Float32Array, share: float) -> Float32Array:
    """Return samples so loud that a share of them exceeds 16 bits and is cut off."""
    level = float(np.quantile(np.abs(samples), 1 - share))
    if not level > 0:
        return samples
    return np.clip(samples * np.float32(32767 / level), -32768, 32767).astype(np.float32)
