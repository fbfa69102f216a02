"""Where the scores of a long recording come from, and the pieces into which it is divided."""

from typing import Protocol

import numpy as np

PAUSE = 20  # frames over which the quietness of a cut is averaged


class ScoreSource(Protocol):
    """Scores of the frames of a recording, which need not be in memory at the same time.

    Attributes
    ----------
    num_frames : int
    period : int
        Of the frames in 100 ns units.
    pieces : list of (int, int)
        Frames, end exclusive, of pieces that cover the recording.
    """

    num_frames: int
    period: int
    pieces: list[tuple[int, int]]

    def scores(self, first: int, last: int) -> np.ndarray:
        """Return the log-likelihoods (K, last - first) of frames first to last - 1; called by several threads."""
        ...


class ArrayScores:
    """The scores of a whole recording in memory.

    Parameters
    ----------
    scores : (K, T) array, float32
        Log-likelihoods, a column per frame.
    pieces : list of (int, int)
        As of `ScoreSource`, such as those of `divide`.
    period : int
    """

    def __init__(self, scores: np.ndarray, pieces: list[tuple[int, int]], period: int = 100_000):
        self._scores = scores
        self.pieces = pieces
        self.num_frames = scores.shape[1]
        self.period = period

    def scores(self, first: int, last: int) -> np.ndarray:
        """Return the scores of frames first to last - 1."""
        return self._scores[:, first:last]


def divide(quiet: np.ndarray, shortest: int, longest: int) -> list[tuple[int, int]]:
    """Divide a recording at its clearest pauses.

    Parameters
    ----------
    quiet : (T,) array
        How quiet each frame is, on any scale.
    shortest, longest : int
        Frames of a piece.

    Returns
    -------
    list of (int, int)
        First and last frame, end exclusive, of pieces that cover all frames.  The last one may be shorter.
    """
    total = np.concatenate([[0.0], np.cumsum(np.asarray(quiet, np.float64))])
    frames = np.arange(len(quiet))
    half = PAUSE // 2
    low, high = np.maximum(frames - half, 0), np.minimum(frames + half, len(quiet))
    mean = (total[high] - total[low]) / np.maximum(high - low, 1)
    pieces = []
    first = 0
    while len(quiet) - first > longest:
        cut = first + shortest + int(np.argmax(mean[first + shortest : first + longest]))
        pieces.append((first, cut))
        first = cut
    return [*pieces, (first, len(quiet))] if len(quiet) else []
