"""Scores of an utterance while its frames arrive, equal to those of the whole utterance up to rounding."""

import numpy as np

from acoustic.scoring.window_scorer import WindowScorer
from readers.errors import ConfigError, ShapeError
from readers.minibatches.context import subsampled_windows, windows


class ScoreStream:
    """Scores of one utterance: call `push` as frames arrive, and `finish` once at the end.

    Parameters
    ----------
    scorer : WindowScorer
    block : int
        Frames that are scored at a time, rounded up to columns; a recurrent network that runs in chunks has its own
        number.

    Raises
    ------
    ConfigError
        For a block without frames.
    ModelError
        For a network that needs the whole utterance.
    """

    def __init__(self, scorer: WindowScorer, block: int = 10):
        if block < 1:
            raise ConfigError(f"blocks of {block} frames; expected at least 1")
        self.scorer = scorer
        self._parts = scorer.part_scorer(scorer.num_columns(block))
        self._step = scorer.subsampling
        self._right = scorer.window // 2
        self._frames = np.zeros((0, scorer.dim), np.float32)  # from the first frame of the next window on
        self._num_frames = self._num_scored = 0
        self._last = self._frames

    @property
    def delay(self) -> int:
        """Frames by which the newest score lags at most: half the window, the block and the look-ahead."""
        return self._right + self._step * (self._parts.ahead + self._parts.size) - 1

    def push(self, frames: np.ndarray) -> np.ndarray:
        """Return the scores that further frames complete.

        Parameters
        ----------
        frames : array (dim, n)
            Of any float type; n may be 0.

        Returns
        -------
        array (num_outputs, m)
            float32, Fortran order, m >= 0.

        Raises
        ------
        ShapeError
            For frames of another dimension or values that are not finite.
        """
        try:
            self.scorer.check_frames(frames)
        except ShapeError as fault:
            raise ShapeError(
                f"{fault} (after {self._num_frames} others)" if self._num_frames else f"{fault}"
            ) from fault
        if not frames.shape[1]:
            return self._scores([])
        rows = frames.T.astype(np.float32)
        lead = self._step * self.scorer.edges[0] + self.scorer.window // 2
        before = np.repeat(rows[:1], lead, axis=0) if not self._num_frames else self._frames
        self._frames = np.concatenate([before, rows])
        self._last = rows[-1:]
        self._num_frames += len(rows)
        parts = []
        while self._num_windows() >= self._parts.size + self._parts.ahead:
            parts.append(self._part(self._parts.ahead, False))
        return self._scores(parts)

    def finish(self) -> np.ndarray:
        """Return the last scores (num_outputs, m), float32; m is 0 if there were no frames."""
        if not self._num_frames:
            return self._scores([])
        total = sum(self.scorer.edges) + self.scorer.num_columns(self._num_frames)
        missing = self.scorer.window + self._step * (total - self._num_scored - 1) - len(self._frames)
        self._frames = np.concatenate([self._frames, np.repeat(self._last, max(missing, 0), axis=0)])
        parts = []
        while (num_missing := total - self._num_scored) > 0:
            num_ahead = min(max(num_missing - self._parts.size, 0), self._parts.ahead)
            parts.append(self._part(num_ahead, num_missing <= self._parts.size + self._parts.ahead, num_missing))
        scores = self._scores(parts)
        self._num_frames = self._num_scored = 0
        return scores[:, : max(scores.shape[1] - self.scorer.edges[1], 0)]

    def _num_windows(self) -> int:
        """Return how many columns have all their frames, with those up to the next column."""
        return max(0, (len(self._frames) - max(self.scorer.window, self._step)) // self._step + 1)

    def _part(self, num_ahead: int, ends: bool, most: int | None = None) -> np.ndarray:
        """Score the next part, at most so many columns, and drop its frames."""
        count = min(self._parts.size, self._num_windows() if most is None else most)
        stacked = windows(np.ascontiguousarray(self._frames), self.scorer.window)[:: self._step][: count + num_ahead]
        scores = self._parts.score(stacked, num_ahead, ends)
        self._frames = self._frames[count * self._step :]
        edge = max(self.scorer.edges[0] - self._num_scored, 0)
        self._num_scored += count
        return scores[:, edge:]

    def _scores(self, parts: list[np.ndarray]) -> np.ndarray:
        if len(parts) == 1:
            return parts[0]
        return np.asfortranarray(np.concatenate([np.zeros((self.scorer.num_outputs, 0), np.float32), *parts], axis=1))


class ChunkScores:
    """Scores of one utterance in chunks, each as soon as the frames that it depends on have arrived.

    Each chunk is scored with all of its context, so that no column waits for others; the network computes several
    columns for each that it returns.  The scores equal those of the whole utterance up to rounding.

    Parameters
    ----------
    scorer : WindowScorer
    size : int
        Frames of a chunk, a multiple of the scorer's subsampling.
    ahead : int
        Frames after a chunk on which its scores depend.

    Raises
    ------
    ConfigError
        For chunks that are no multiple.
    """

    def __init__(self, scorer: WindowScorer, size: int, ahead: int):
        if size % scorer.subsampling:
            raise ConfigError(f"chunks of {size} frames; expected a multiple of {scorer.subsampling}, as of a column")
        self.scorer = scorer
        self._columns = size // scorer.subsampling
        self._ahead = ahead
        self._context = max(scorer.edges) + scorer.window  # columns before and after a chunk, more than it depends on
        self._rows = np.zeros((0, scorer.dim), np.float32)  # from `context` columns before the next chunk on
        self._first = 0  # column of the first row
        self._num_scored = 0

    def push(self, frames: np.ndarray) -> np.ndarray:
        """Return the scores (num_outputs, m), float32, that further frames (dim, n) complete."""
        self.scorer.check_frames(frames)
        self._rows = np.concatenate([self._rows, frames.T.astype(np.float32)])
        num_columns = self._first + max(0, len(self._rows) - self._ahead) // self.scorer.subsampling
        return self._score(num_columns // self._columns * self._columns)

    def finish(self) -> np.ndarray:
        """Return the last scores (num_outputs, m), float32."""
        return self._score(self._first + self.scorer.num_columns(len(self._rows)))

    def _score(self, stop: int) -> np.ndarray:
        """Score the columns up to `stop`, and drop the rows that the others do not need."""
        count = max(0, stop - self._num_scored)
        if not count:
            return np.zeros((self.scorer.num_outputs, 0), np.float32, order="F")
        beside = self.scorer.window // 2
        before = self._num_scored - self._first
        stacked = subsampled_windows(
            self._rows, (beside, beside), self.scorer.subsampling, before - self._context, count + 2 * self._context
        )
        scores = self.scorer.score_windows(stacked)[:, self._context : self._context + count]
        self._num_scored += count
        first = max(0, self._num_scored - self._context - 1)  # a column more, for the window of the first one
        self._rows = self._rows[(first - self._first) * self.scorer.subsampling :]
        self._first = first
        return scores
