"""The noise removal of CMU Sphinx: follows the noise of each filter, and reduces it.

Source: G. Doblinger, Computationally efficient speech enhancement by spectral minima tracking in subbands, 1995, and
C. Kim and R. Stern, Power-normalized cepstral coefficients, 2012.
"""

import numpy as np

from readers.common.arrays import Float32Array, Float64Array
from readers.common.kernels import njit

SMOOTHED = 0.7  # share of the past in the power of a filter
RISING, FALLING = 0.995, 0.5  # share of the past in a lower envelope below the power, and above it
MASKING, MASKED = 0.85, 0.2  # how a peak decays, and what is left of it where it masks
MAX_GAIN = 20.0
BESIDE = 4  # filters on either side whose gains are averaged


class NoiseRemoval:
    """Reduces the noise in filter outputs that arrive frame by frame."""

    def __init__(self) -> None:
        self._state = np.zeros((0, 0))  # power, noise, floor and peak of each filter

    def reduce(self, bank: Float32Array) -> None:
        """Reduce the noise in filter outputs (num_channels, T), in place; they follow the earlier ones.

        The noise of a filter is the lower envelope of its smoothed power.  Its gain is the share of what is left,
        masked by earlier peaks and not below an envelope of its own; gains of neighbouring filters are averaged.
        """
        if not self._state.size and bank.shape[1]:
            power = bank[:, 0].astype(np.float64)
            self._state = np.stack([power, power / MAX_GAIN, power / MAX_GAIN, np.zeros(len(bank))])
        reduce_noise(bank, self._state)


@njit(cache=True, nogil=True)
def reduce_noise(bank: Float32Array, state: Float64Array) -> None:
    """Reduce the noise in filter outputs (num_channels, T) in place; state: (4, num_channels), see NoiseRemoval."""
    num_channels, num_frames = bank.shape
    power, noise, floor, peak = state[0], state[1], state[2], state[3]
    gains = np.empty(num_channels)
    for t in range(num_frames):
        for c in range(num_channels):
            power[c] += (1.0 - SMOOTHED) * (bank[c, t] - power[c])
            # An envelope follows slowly upwards, fast downwards.
            noise[c] += (1.0 - (RISING if power[c] >= noise[c] else FALLING)) * (power[c] - noise[c])
            signal = max(power[c] - noise[c], 1.0)
            floor[c] += (1.0 - (RISING if signal >= floor[c] else FALLING)) * (signal - floor[c])
            peak[c] *= MASKING
            masked = MASKED * peak[c] if signal < MASKING * peak[c] else signal
            peak[c] = max(peak[c], signal)
            gain = max(masked, floor[c]) / power[c] if power[c] > 0 else MAX_GAIN
            gains[c] = min(max(gain, 1.0 / MAX_GAIN), MAX_GAIN)
        for c in range(num_channels):
            beside = gains[max(c - BESIDE, 0) : c + BESIDE + 1]
            bank[c, t] *= beside.mean()
