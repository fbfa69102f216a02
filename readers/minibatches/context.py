"""Context windows: each column is a frame stacked with its neighbours.

The column of frame t is x[t-left], ..., x[t], ..., x[t+right] from top to bottom, oldest first; beyond the ends of the
utterance its first or last frame is repeated.  Source: CNTK book 3.4.2 (`dim`).

In this module, frames are stored as (frames, dim) in C order, the transpose of a Fortran matrix.  With repeated frames
at the edges, the window of each frame is then contiguous, so that stacking is a copy.
"""

import numpy as np


def pad_edges(frames: np.ndarray, out: np.ndarray, left: int) -> None:
    """Copy frames (T, dim) to out (left + T + right, dim), and repeat the first and last frame at the edges."""
    end = left + len(frames)
    out[left:end] = frames
    out[:left] = frames[0]
    out[end:] = frames[-1]


def frames_between(first: int, stop: int, num_frames: int) -> np.ndarray:
    """Return the numbers first..stop-1, where those beyond the ends of num_frames frames are the first and last."""
    return np.clip(np.arange(first, stop), 0, num_frames - 1)


def subsampled_windows(frames: np.ndarray, context: tuple[int, int], step: int, first: int, count: int) -> np.ndarray:
    """Return the windows of every step-th frame of frames (T, dim), (count, (left + 1 + right) * dim), read-only.

    Row k is the window of frame step * (first + k); beyond the ends the first or last frame is repeated.
    """
    left, right = context
    last = step * (first + count - 1)
    padded = frames[frames_between(step * first - left, last + right + 1, len(frames))]
    return windows(padded, left + 1 + right)[::step]


def windows(padded: np.ndarray, width: int) -> np.ndarray:
    """Return all windows of `width` frames of padded (n, dim), C order, as a read-only view (n - width + 1, width *
    dim).
    """
    num_frames, dim = padded.shape
    step = padded.itemsize
    return np.lib.stride_tricks.as_strided(
        padded, (num_frames - width + 1, width * dim), (dim * step, step), writeable=False
    )
