"""What happens to eSpeak's samples on their way into the corpus: another rate, noise, a level."""

import functools

import numpy as np

HALF_WIDTH = 16  # zero crossings of the interpolating sinc on each side
PHASES = 512  # positions between two samples; the nearest is taken, an error of about -60 dB
PASSBAND = 0.93  # of the lower of the two Nyquist frequencies
LOUDEST = 32000.0


def resample(samples: np.ndarray, ratio: float) -> np.ndarray:
    """Samples (N,) at another rate: output n is the input at time n * ratio; ceil(N / ratio) values, float32.

    ratio: input rate over output rate, any positive number.  A Hann-windowed sinc that also keeps frequencies above the
    output's range out.
    """
    taps = interpolation_taps(float(ratio))
    half = taps.shape[1] // 2
    times = np.arange(int(np.ceil(len(samples) / ratio))) * ratio
    whole = np.floor(times).astype(np.int64)
    phase = np.rint((times - whole) * PHASES).astype(np.int64)
    padded = np.zeros(len(samples) + 2 * half + 1, np.float32)
    padded[half - 1 : half - 1 + len(samples)] = samples
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half)
    return np.einsum("nk,nk->n", windows[whole], taps[phase])


@functools.lru_cache(maxsize=8)
def interpolation_taps(ratio: float) -> np.ndarray:
    """Taps (PHASES + 1, 2 * half) float32: row p weighs samples -half + 1 .. half around a time p / PHASES past 0."""
    cutoff = PASSBAND * min(1.0, 1.0 / ratio)
    half = int(np.ceil(HALF_WIDTH / cutoff))
    times = np.arange(-half + 1, half + 1) - np.arange(PHASES + 1)[:, None] / PHASES
    window = np.cos(np.pi / 2 * np.clip(times / half, -1, 1)) ** 2
    return (cutoff * np.sinc(cutoff * times) * window).astype(np.float32)


def noise(length: int, tilt: float, rng: np.random.Generator) -> np.ndarray:
    """Noise (length,) float32 of unit power whose power falls with frequency to the power of tilt: 0 white, 1 pink."""
    size = 1 << max(length - 1, 1).bit_length()  # the transform of a power of two is quick
    spectrum = np.fft.rfft(rng.standard_normal(size, dtype=np.float32))
    spectrum *= np.maximum(np.arange(len(spectrum)), 1).astype(np.float32) ** (-tilt / 2)
    values = np.fft.irfft(spectrum, size)[:length]
    return (values / np.sqrt(np.mean(values**2))).astype(np.float32)


def finish(samples: np.ndarray, level: float, snr: float, tilt: float, rng: np.random.Generator) -> np.ndarray:
    """Samples at a root mean square of level (16-bit scale) with noise snr dB below, scaled down if they would clip."""
    power = float(np.mean(samples.astype(np.float64) ** 2))
    loud = samples * np.float32(level / np.sqrt(power)) if power else samples
    loud = loud + noise(len(samples), tilt, rng) * np.float32(level * 10 ** (-snr / 20))
    return loud * np.float32(min(1.0, LOUDEST / np.abs(loud).max()))
