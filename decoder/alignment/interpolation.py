"""The times of an alignment's boundaries, unbiased and finer than a frame.

A frame is a window of audio, and what it holds is found at its centre.  The boundary between frames k - 1 and k lies
therefore, on average, in the middle between their centres,

    k * period + (window - period) / 2

that is 7.5 ms after k * period with windows of 25 ms every 10 ms.  HTK and Kaldi write k * period, which is early by
that; labels on this grid are right for training, where they count frames.

Between the two centres, the scores of both sides interpolate.  In each of the two frames, the left state has the share

    1 / (1 + exp(-scale * d))

where d is its log-likelihood less that of the right state.  The boundary is where the shares of the left state end: in
the middle if it has all of one frame and nothing of the other, half a frame later if it has half of the other, too.
The scale flattens the shares, which are too sure.

References
----------
M. C. Kelley, S. J. Perry, B. V. Tucker: The Mason-Alberta Phonetic Segmenter: a forced alignment system based on deep
neural networks and interpolation. Phonetica 81, 2024, where lines between the probabilities of both frames intersect.
"""

from typing import NamedTuple

import numpy as np

from decoder.alignment.aligner import StateAlignment
from readers.common.arrays import Float64Array

SCALE = 0.35  # of log-likelihoods, where the mean error on speech with exact times is least; flat from 0.2 to 0.5
RESOLUTION = 10_000  # of fine times, 1 ms, as in ELAN's files and CTM
FARTHEST = 0.4  # frames; what remains of a state of one frame is at least a fifth of it


class FrameTimes(NamedTuple):
    """When frames were spoken; all times are in 100 ns units.

    Attributes
    ----------
    period : int
        From frame to frame.
    delay : float
        How much later than k * period boundary k is, (window - period) / 2; 0 for times on HTK's grid.
    is_fine : bool
        Whether boundaries lie between frames, too.
    """

    period: int
    delay: float = 0.0
    is_fine: bool = False


def boundary_times(
    alignment: StateAlignment, scores: np.ndarray, times: FrameTimes, end: float, scale: float = 1.0
) -> Float64Array:
    """Return when the visits of an alignment begin and end.

    Parameters
    ----------
    alignment : StateAlignment
        With n visits.
    scores : (K, T) array, float32
        The log-likelihoods that were aligned.
    times : FrameTimes
    end : float
        Duration of the audio in 100 ns units, with which fine boundaries end.
    scale : float
        Factor on the log-likelihoods; below 1 for Gaussian mixtures.

    Returns
    -------
    (n + 1,) array, float64
        In 100 ns units, ascending; visit i is from element i to element i + 1.  Those on HTK's grid are whole periods.
    """
    frames = np.append(alignment.start, alignment.end[-1:]).astype(np.float64)
    if not times.is_fine:
        return frames * times.period
    boundaries = frames * times.period + times.delay
    boundaries[1:-1] += times.period * offsets(alignment, scores, scale)
    boundaries = RESOLUTION * np.rint(boundaries / RESOLUTION)
    boundaries[0] = 0.0
    boundaries[-1] = end
    return boundaries


def offsets(alignment: StateAlignment, scores: np.ndarray, scale: float = 1.0) -> Float64Array:
    """Return how many frames later than midway between two centres each inner boundary is, (n - 1,), at most 0.4."""
    rows = alignment.graph.row[alignment.position]
    is_scored = rows < len(scores)  # no state of a loop over all phones, which is of any phone
    rows = np.where(is_scored, rows, 0)
    first = alignment.start[1:]  # frame of the right side
    shares = np.zeros(len(first))
    for frame in (first - 1, first):
        left_scores, right_scores = (scores[row, frame].astype(np.float64) for row in (rows[:-1], rows[1:]))
        # Equal scores, both -inf too, say nothing.
        says = (left_scores != right_scores) & is_scored[:-1] & is_scored[1:]
        difference = np.subtract(left_scores, right_scores, out=np.zeros_like(left_scores), where=says)
        shares += 0.5 * np.tanh(0.5 * SCALE * scale * difference)
    return np.clip(shares, -FARTHEST, FARTHEST)
