"""Operations over time: deltas, mean of an utterance, normalised energy.

Source: HTK Book 3.4, sections 5.6 (mean), 5.8 (energy) and 5.9 (deltas, eq. 5.16).
"""

import numpy as np

from readers.common.arrays import Float32Array
from readers.errors import ShapeError


def deltas(x: Float32Array, half_width: int = 2, simple: bool = False) -> Float32Array:
    """Return the regression slopes of each row over time.

    x: (dim, T) float32, Fortran order, any unit.  Returns the same shape and order, in that unit per frame.
    With W = half_width, d_t = sum_{q=1..W} q (x_{t+q} - x_{t-q}) / (2 sum q^2); simple: (x_{t+W} - x_{t-W}) / 2W
    (SIMPLEDIFFS).  The first and last frame are repeated beyond the edges.  Raises ShapeError if T = 0 or half_width <
    1.
    """
    dim, num_frames = x.shape
    if num_frames == 0 or half_width < 1:
        raise ShapeError(f"deltas: {num_frames} frames, half width {half_width}; expected at least 1 of each")
    padded = np.empty((dim, num_frames + 2 * half_width), x.dtype, order="F")
    padded[:, half_width : half_width + num_frames] = x
    padded[:, :half_width] = x[:, :1]
    padded[:, half_width + num_frames :] = x[:, -1:]

    def difference(q: int) -> Float32Array:
        return padded[:, half_width + q : half_width + q + num_frames] - padded[:, half_width - q :][:, :num_frames]

    if simple:
        return difference(half_width) * x.dtype.type(0.5 / half_width)
    scale = 0.5 / sum(q * q for q in range(1, half_width + 1))
    slopes = difference(1)
    slopes *= x.dtype.type(scale)
    for q in range(2, half_width + 1):
        step = difference(q)
        step *= x.dtype.type(scale * q)
        slopes += step
    return slopes


def normalise_energy(log_energy: Float32Array, scale: float, silence_floor: float) -> Float32Array:
    """Normalise the log energy of an utterance (ENORMALISE): its maximum becomes 1, its floor is silence_floor dB
    below.

    log_energy: (T,) natural log.  Returns 1 - scale (max - max(E, floor)).
    """
    loudest = log_energy.max()
    floor = loudest - silence_floor * np.log(10.0) / 10.0
    return 1.0 - scale * (loudest - np.maximum(log_energy, floor))


def subtract_mean(x: Float32Array) -> None:
    """Subtract each row's mean over time from x (dim, T) in place; sums are computed in float64."""
    x -= x.mean(axis=1, dtype=np.float64, keepdims=True).astype(x.dtype)
