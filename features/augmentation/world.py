"""Multi-condition copies: a room, noise, a telephone, a level, each of them in some copies."""

from collections.abc import Callable

import numpy as np

from features.augmentation.lines import CODECS, clipped, through_telephone
from features.augmentation.mixing import add_noise, reverberate
from features.augmentation.noises import KINDS, noise
from features.augmentation.rooms import room_response
from readers.common.arrays import Float32Array

ROOM, NOISE, BABBLE, CLIPPING = 0.5, 0.7, 0.3, 0.1  # probabilities; that of babble among noises
NARROW, TELEPHONE = 0.5, 0.5  # probability of 8 kHz; that of a telephone among them
CLIPPED = (0.0005, 0.02)  # share of samples
LEVEL = (100.0, 8000.0)  # rms on the scale of 16-bit integers
TELEPHONES = [codec for codec in CODECS if codec != "pcm"]
Babble = Callable[[int, np.random.Generator], np.ndarray]


def world_copy(
    samples: Float32Array,
    rate: int,
    snr: tuple[float, float],
    rng: np.random.Generator,
    babble: Babble | None = None,
) -> Float32Array:
    """Return speech as a microphone somewhere may have taken it.

    Parameters
    ----------
    samples : (N,) array
        Speech on the scale of 16-bit integers, not silent.
    rate : int
        Sample rate in Hz.
    snr : (float, float)
        Lowest and highest signal-to-noise ratio in dB.
    rng : numpy.random.Generator
        Draws what happens to the speech.
    babble : callable, optional
        Returns other voices, given a number of samples and `rng`.

    Returns
    -------
    (N,) float32
        Not delayed.
    """
    if rng.random() < ROOM:
        samples = reverberate(samples, room_response(rate, rng))
    if rng.random() < NOISE:
        if babble is not None and rng.random() < BABBLE:
            other = babble(len(samples), rng)
        else:
            other = noise(str(rng.choice(KINDS)), len(samples), rate, rng)
        samples = add_noise(samples, other, rng.uniform(*snr))
    if rng.random() < CLIPPING:
        samples = clipped(samples, rng.uniform(*CLIPPED))
    else:
        rms = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))
        samples = samples * np.float32(np.exp(rng.uniform(*np.log(LEVEL))) / rms)
    if rng.random() < NARROW:
        codec = str(rng.choice(TELEPHONES)) if rng.random() < TELEPHONE else "pcm"
        samples = through_telephone(samples, rate, codec)
    return samples.astype(np.float32)
