"""Signal processing of eSpeak's samples: sampling rate, noise, level."""

import functools

import numpy as np

HALF_WIDTH = 16  # zero crossings of the interpolating sinc on each side
PHASES = 512  # positions between two samples; rounding to the nearest gives an error of about -60 dB
PASSBAND = 0.93  # relative to the lower of the two Nyquist frequencies
LOUDEST = 32000.0


def resample(samples: np.ndarray, ratio: float) -> np.ndarray:
    """Resample (N,): output n is the input at time n * ratio; returns ceil(N / ratio) values, float32.

    ratio: input rate over output rate, any positive number.  A Hann-windowed sinc, which also removes frequencies above
    the range of the output.
    """
    taps = interpolation_taps(float(ratio))
    half = taps.shape[1] // 2
    times = np.arange(int(np.ceil(len(samples) / ratio))) * ratio
    base = np.floor(times).astype(np.int64)
    phase = np.rint((times - base) * PHASES).astype(np.int64)
    padded = np.zeros(len(samples) + 2 * half + 1, np.float32)
    padded[half - 1 : half - 1 + len(samples)] = samples
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half)
    return np.einsum("nk,nk->n", windows[base], taps[phase])


@functools.lru_cache(maxsize=8)
def interpolation_taps(ratio: float) -> np.ndarray:
    """Return the taps (PHASES + 1, 2 * half) float32 of the interpolating filter.

    Row p weights the samples -half + 1 .. half for the value at time p / PHASES.
    """
    cutoff = PASSBAND * min(1.0, 1.0 / ratio)
    half = int(np.ceil(HALF_WIDTH / cutoff))
    times = np.arange(-half + 1, half + 1) - np.arange(PHASES + 1)[:, None] / PHASES
    window = np.cos(np.pi / 2 * np.clip(times / half, -1, 1)) ** 2
    return (cutoff * np.sinc(cutoff * times) * window).astype(np.float32)


def noise(length: int, tilt: float, rng: np.random.Generator) -> np.ndarray:
    """Return noise (length,) float32 of unit power with a power spectrum proportional to f^-tilt: 0 white, 1 pink."""
    size = 1 << max(length - 1, 1).bit_length()  # FFTs of powers of two are fast
    spectrum = np.fft.rfft(rng.standard_normal(size, dtype=np.float32))
    spectrum *= np.maximum(np.arange(len(spectrum)), 1).astype(np.float32) ** (-tilt / 2)
    values = np.fft.irfft(spectrum, size)[:length]
    return (values / np.sqrt(np.mean(values**2))).astype(np.float32)


def set_level(samples: np.ndarray, level: float, snr: float, tilt: float, rng: np.random.Generator) -> np.ndarray:
    """Scale samples to an RMS of level (16-bit scale) and add noise snr dB below; scale down if they would clip."""
    power = float(np.mean(samples.astype(np.float64) ** 2))
    loud = samples * np.float32(level / np.sqrt(power)) if power else samples
    loud = loud + noise(len(samples), tilt, rng) * np.float32(level * 10 ** (-snr / 20))
    return loud * np.float32(min(1.0, LOUDEST / np.abs(loud).max()))
