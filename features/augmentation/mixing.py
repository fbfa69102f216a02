"""Arithmetic of augmentation: noise at a signal-to-noise ratio, babble, reverberation, speed and volume.

All functions take and return one channel (N,) on the scale of 16-bit integers.
"""

from collections.abc import Sequence

import numpy as np

from readers.audio.resampling import resample
from readers.errors import ShapeError

PEAK = 32767.0  # largest sample of 16-bit audio


def mean_power(samples: np.ndarray) -> float:
    """Return the mean of the squared samples.

    Parameters
    ----------
    samples : (N,) array

    Returns
    -------
    float
        0 for no samples.
    """
    return float(np.mean(np.square(samples, dtype=np.float64))) if len(samples) else 0.0


def add_noise(speech: np.ndarray, noise: np.ndarray, snr: float) -> np.ndarray:
    """Add noise to speech at a signal-to-noise ratio.

    Parameters
    ----------
    speech : (N,) array
    noise : (N,) array
        Scaled before it is added.
    snr : float
        Ratio of the mean powers of speech and scaled noise over the whole utterance, in dB.

    Returns
    -------
    (N,) float32

    Raises
    ------
    ShapeError
        If one of the signals is silent, so that the ratio is undefined.

    Examples
    --------
    >>> import numpy as np
    >>> from features.augmentation import add_noise, mean_power
    >>> speech, noise = np.full(100, 300.0), np.tile([-1.0, 1.0], 50)
    >>> added = add_noise(speech, noise, snr=20) - speech
    >>> round(mean_power(speech) / mean_power(added))
    100
    """
    return np.asarray(speech + noise_scale(speech, noise, snr) * noise, np.float32)


def noise_scale(speech: np.ndarray, noise: np.ndarray, snr: float) -> float:
    """Return the factor of `noise` that gives a signal-to-noise ratio in dB.  Raises ShapeError for silent signals."""
    speech_power = mean_power(speech)
    noise_power = mean_power(noise)
    if not speech_power > 0:
        raise ShapeError("the speech is silent; expected speech, because a signal-to-noise ratio is wanted")
    if not noise_power > 0:
        raise ShapeError("the noise is silent; expected noise, because a signal-to-noise ratio is wanted")
    return float(np.sqrt(speech_power / noise_power / 10 ** (snr / 10)))


def fit_length(noise: np.ndarray, length: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random part of a noise, or the noise repeated, as long as the speech.

    Parameters
    ----------
    noise : (M,) array
        M > 0.
    length : int
        Number of samples N.
    rng : numpy.random.Generator
        Draws where the noise begins: anywhere within it if it is repeated.

    Returns
    -------
    (N,) array
    """
    if len(noise) >= length:
        begin = int(rng.integers(len(noise) - length + 1))
        return noise[begin : begin + length]
    begin = int(rng.integers(len(noise)))
    return noise[(begin + np.arange(length)) % len(noise)]


def babble(talkers: Sequence[np.ndarray], length: int, rng: np.random.Generator) -> np.ndarray:
    """Return the sum of several talkers of equal power.

    Parameters
    ----------
    talkers : sequence of (M,) arrays
        Speech of each talker, repeated or cut to the length as in `fit_length`.
    length : int
        Number of samples N.
    rng : numpy.random.Generator

    Returns
    -------
    (N,) float64

    Raises
    ------
    ShapeError
        If the part of a talker that was drawn is silent.
    """
    total = np.zeros(length)
    for talker in talkers:
        part = fit_length(talker, length, rng).astype(np.float64)
        power = mean_power(part)
        if not power > 0:
            raise ShapeError("a talker of the babble is silent; expected speech")
        total += part / np.sqrt(power)
    return total


def reverberate(speech: np.ndarray, response: np.ndarray) -> np.ndarray:
    """Convolve speech with an impulse response.

    The peak of the response is taken as time 0, so the result is not delayed, and the labels of the speech remain
    valid.  The result has the power of the speech.

    Parameters
    ----------
    speech : (N,) array
    response : (M,) array
        Impulse response at the sample rate of the speech.

    Returns
    -------
    (N,) float32
        The reverberation after the end of the speech is cut off.

    Raises
    ------
    ShapeError
        If the response is zero or empty.
    """
    if not np.any(response):
        raise ShapeError("the impulse response is zero; expected a response with a peak")
    peak = int(np.argmax(np.abs(response)))
    size = 1 << (len(speech) + len(response) - 2).bit_length()
    spectrum = np.fft.rfft(speech.astype(np.float64), size) * np.fft.rfft(response.astype(np.float64), size)
    wet = np.fft.irfft(spectrum, size)[peak : peak + len(speech)]
    power = mean_power(wet)
    return np.asarray(wet * np.sqrt(mean_power(speech) / power) if power > 0 else wet, np.float32)


def change_speed(samples: np.ndarray, factor: float, sample_rate: float) -> np.ndarray:
    """Change speed and pitch by resampling, as `sox speed` does.

    Parameters
    ----------
    samples : (N,) array
    factor : float
        Above 1 the result is shorter.
    sample_rate : float
        In Hz; sample rate times factor must be 4000 to 1,000,000 Hz.

    Returns
    -------
    (M,) float32
        M is N / factor, rounded.
    """
    return resample(samples, sample_rate * factor, sample_rate)


def limit_peak(samples: np.ndarray) -> np.ndarray:
    """Scale samples down, if necessary, so that they fit 16 bits.

    Parameters
    ----------
    samples : (N,) array

    Returns
    -------
    (N,) array
        The samples themselves if the largest is at most 32767.
    """
    peak = float(np.max(np.abs(samples), initial=0.0))
    return samples if peak <= PEAK else samples * np.float32(PEAK / peak)
