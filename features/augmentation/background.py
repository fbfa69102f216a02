"""Background without speech: what a microphone gives when nobody speaks, is muted or switched off, for training.

A network that has heard silence only between the words of a corpus takes other noise for speech.
"""

import numpy as np

PIECES = 4  # at most, of one recording
LEVELS = {"zeros": (0.0, 0.0), "white": (1.0, 500.0), "pink": (1.0, 500.0), "hum": (3.0, 500.0), "tone": (3.0, 3000.0)}
MAINS = (50.0, 60.0)  # Hz
HARMONICS = 11


def background(num_samples: int, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Return a recording of background: pieces of digital zeros, white and pink noise, mains hum and pure tones.

    Parameters
    ----------
    num_samples : int
    rate : float
        Sample rate in Hz.
    rng : numpy.random.Generator
        Draws kinds, lengths and levels of the pieces; the logarithm of a level is uniform (LEVELS: rms on the scale of
        16-bit integers).

    Returns
    -------
    (num_samples,) float32
        Whole numbers on the scale of 16-bit integers.
    """
    count = int(rng.integers(1, PIECES + 1))
    ends = [*np.sort(rng.integers(0, num_samples + 1, count - 1)), num_samples]
    pieces = [_piece(end - begin, rate, rng) for begin, end in zip([0, *ends], ends)]
    return np.clip(np.rint(np.concatenate(pieces)), -32768, 32767).astype(np.float32)


def _piece(num_samples: int, rate: float, rng: np.random.Generator) -> np.ndarray:
    kind = str(rng.choice(list(LEVELS)))
    low, high = LEVELS[kind]
    if kind == "zeros" or num_samples == 0:
        return np.zeros(num_samples)
    level = np.exp(rng.uniform(np.log(low), np.log(high)))
    seconds = np.arange(num_samples) / rate
    if kind == "tone":
        shape = np.sin(2 * np.pi * np.exp(rng.uniform(np.log(60.0), np.log(rate / 2.5))) * seconds)
    elif kind == "hum":
        mains = rng.choice(MAINS)
        shape = sum(
            rng.uniform() * np.sin(2 * np.pi * (mains * order * seconds + rng.uniform()))
            for order in range(1, HARMONICS + 1)
        )
    else:
        shape = rng.standard_normal(num_samples)
    if kind == "pink":
        spectrum = np.fft.rfft(shape)
        shape = np.fft.irfft(spectrum / np.sqrt(np.maximum(np.arange(len(spectrum)), 1)), num_samples)
    return shape * (level / max(np.sqrt(np.mean(shape**2)), 1e-9))
