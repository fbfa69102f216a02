"""Frames stacked with their neighbours, as readers and scorers do it with `pad_edges` and `windows`."""

import numpy as np

from readers.minibatches.context import pad_edges, windows


def splice(frames, left, right):
    """Frames (dim, T) -> (dim * (1 + left + right), T), a new array in Fortran order."""
    dim, num_frames = frames.shape
    padded = np.empty((left + num_frames + right, dim), frames.dtype)
    pad_edges(frames.T, padded, left)
    return windows(padded, 1 + left + right)[:num_frames].copy().T
