"""Scores of frames that are still coming in, the same as for the whole utterance up to rounding."""

import numpy as np

from acoustic.scoring.scorer import WindowScorer
from readers.errors import ConfigError, ShapeError
from readers.minibatches.context import windows


class ScoreStream:
    """Scores of one utterance: `push` frames as they come, `finish` once.

    block: frames that are scored at a time; a recurrent network that is run in chunks has its own number.
    delay: frames that the newest score lags at most: the window's right half, the block, what is looked ahead.
    Raises ModelError for networks that need the whole utterance.
    """

    def __init__(self, scorer: WindowScorer, block: int = 10):
        if block < 1:
            raise ConfigError(f"blocks of {block} frames; expected at least 1")
        self.scorer = scorer
        self._parts = scorer.in_parts(block)
        self._right = scorer.window // 2
        self._frames = np.zeros((0, scorer.dim), np.float32)  # from the first of the next window on
        self._num_frames = 0

    @property
    def delay(self) -> int:
        return self._right + self._parts.ahead + self._parts.size - 1

    def push(self, frames: np.ndarray) -> np.ndarray:
        """Scores (num_outputs, m), float32 in Fortran order, m >= 0, of what these frames (dim, n) complete.

        Raises ShapeError for other shapes and values that are not finite.
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
        """The last scores (num_outputs, m); none if there were no frames."""
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
        """Score the next part and forget its frames."""
        count = min(self._parts.size, self._num_windows())
        stacked = windows(np.ascontiguousarray(self._frames), self.scorer.window)[: count + num_ahead]
        scores = self._parts.score(stacked, num_ahead, ends)
        self._frames = self._frames[count:]
        return scores

    def _scores(self, parts: list[np.ndarray]) -> np.ndarray:
        if len(parts) == 1:
            return parts[0]
        return np.asfortranarray(np.concatenate([np.zeros((self.scorer.num_outputs, 0), np.float32), *parts], axis=1))
