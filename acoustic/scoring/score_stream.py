"""Scores of an utterance while its frames arrive, equal to those of the whole utterance up to rounding."""

import numpy as np

from acoustic.scoring.scorer import WindowScorer
from readers.errors import ConfigError, ShapeError
from readers.minibatches.context import windows


class ScoreStream:
    """Scores of one utterance: call `push` as frames arrive, and `finish` once at the end.

    Parameters
    ----------
    scorer : WindowScorer
    block : int
        Frames that are scored at a time; a recurrent network that runs in chunks has its own number.

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
        self._parts = scorer.part_scorer(block)
        self._right = scorer.window // 2
        self._frames = np.zeros((0, scorer.dim), np.float32)  # from the first frame of the next window on
        self._num_frames = 0

    @property
    def delay(self) -> int:
        """Frames by which the newest score lags at most: half the window, the block and the look-ahead."""
        return self._right + self._parts.ahead + self._parts.size - 1

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
        before = np.repeat(rows[:1], self.scorer.window // 2, axis=0) if not self._num_frames else self._frames
        self._frames = np.concatenate([before, rows])
        self._num_frames += len(rows)
        parts = []
        while self._num_windows() >= self._parts.size + self._parts.ahead:
            parts.append(self._part(self._parts.ahead, False))
        return self._scores(parts)

    def finish(self) -> np.ndarray:
        """Return the last scores (num_outputs, m), float32; m is 0 if there were no frames."""
        if not self._num_frames:
            return self._scores([])
        self._frames = np.concatenate([self._frames, np.repeat(self._frames[-1:], self._right, axis=0)])
        parts = []
        while (left := self._num_windows()) > 0:
            num_ahead = min(max(left - self._parts.size, 0), self._parts.ahead)
            parts.append(self._part(num_ahead, left <= self._parts.size + self._parts.ahead))
        self._num_frames = 0
        return self._scores(parts)

    def _num_windows(self) -> int:
        return len(self._frames) - self.scorer.window + 1

    def _part(self, num_ahead: int, ends: bool) -> np.ndarray:
        """Score the next part and drop its frames."""
        count = min(self._parts.size, self._num_windows())
        stacked = windows(np.ascontiguousarray(self._frames), self.scorer.window)[: count + num_ahead]
        scores = self._parts.score(stacked, num_ahead, ends)
        self._frames = self._frames[count:]
        return scores

    def _scores(self, parts: list[np.ndarray]) -> np.ndarray:
        if len(parts) == 1:
            return parts[0]
        return np.asfortranarray(np.concatenate([np.zeros((self.scorer.num_outputs, 0), np.float32), *parts], axis=1))
