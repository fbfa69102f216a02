"""Noises that are computed: coloured noise, mains hum and music."""

import numpy as np

from features.augmentation.background import HARMONICS, MAINS
from readers.common.arrays import Float64Array

COLOURS = (-1.0, 2.0)  # exponents of 1/f in the power spectrum: from blue to brown
LOWEST_NOTE, OCTAVES = 110.0, 3  # Hz
SCALE = (0, 2, 4, 5, 7, 9, 11)  # semitones of a major scale
VOICES = 3  # of music, at most
NOTE = (0.15, 0.8)  # s
KINDS = ("coloured", "hum", "music")


def noise(kind: str, num_samples: int, rate: float, rng: np.random.Generator) -> Float64Array:
    """Return noise of a kind.

    Parameters
    ----------
    kind : {"coloured", "hum", "music"}
    num_samples : int
    rate : float
        Sample rate in Hz.
    rng : numpy.random.Generator

    Returns
    -------
    (num_samples,) float64
        Of any level; not silent.
    """
    if kind == "coloured":
        return coloured(num_samples, rng.uniform(*COLOURS), rng)
    if kind == "hum":
        orders = rng.choice(MAINS) * np.arange(1, HARMONICS + 1)
        hum = _tones(orders[orders < rate / 2], num_samples, rate, rng)
        return hum + 0.05 * np.std(hum) * rng.standard_normal(num_samples)
    return _music(num_samples, rate, rng)


def coloured(num_samples: int, exponent: float, rng: np.random.Generator) -> Float64Array:
    """Noise whose power falls as 1 / frequency^exponent."""
    spectrum = np.fft.rfft(rng.standard_normal(num_samples))
    spectrum[1:] *= np.arange(1, len(spectrum)) ** (-exponent / 2)
    return np.fft.irfft(spectrum, num_samples)


def _tones(frequencies: Float64Array, num_samples: int, rate: float, rng: np.random.Generator) -> Float64Array:
    """A sum of sine tones with random amplitudes and phases."""
    seconds = np.arange(num_samples) / rate
    total = np.zeros(num_samples)
    for frequency in frequencies:
        total += rng.uniform(0.1, 1.0) * np.sin(2 * np.pi * (frequency * seconds + rng.uniform()))
    return total


def _music(num_samples: int, rate: float, rng: np.random.Generator) -> Float64Array:
    """Some voices, each a melody of notes with decaying harmonics."""
    total = np.zeros(num_samples)
    for _ in range(int(rng.integers(1, VOICES + 1))):
        begin = 0
        brightness = rng.uniform(0.4, 0.9)  # ratio of the amplitudes of harmonics
        while begin < num_samples:
            length = max(1, round(rng.uniform(*NOTE) * rate))
            tone = LOWEST_NOTE * 2 ** (int(rng.integers(OCTAVES)) + int(rng.choice(SCALE)) / 12)
            seconds = np.arange(min(length, num_samples - begin)) / rate
            for order in range(1, 1 + min(10, int(rate / 2 / tone))):
                note = brightness**order * np.sin(2 * np.pi * order * tone * seconds)
                total[begin : begin + len(seconds)] += note * np.exp(-3 * seconds) * (1 - np.exp(-200 * seconds))
            begin += length
    return total + 1e-3 * rng.standard_normal(num_samples)
