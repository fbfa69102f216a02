"""What tying needs of the training data: of every triphone's states the count, sum and sum of squares of frames."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from decoder.tying.runs import StateRun
from readers.errors import FormatError, ShapeError

Key = tuple[str, int]  # model, HTK's number of its state


@dataclass
class Statistics:
    """Counts, sums and sums of squares of the frames of every model's states.

    dim: values of a feature vector, d; kind: HTK's name of the features, for the HMM set's header; rows: (model, state)
    -> its row in count (n,), total and square (n, d) float64.
    """

    dim: int
    kind: str = "USER"
    rows: dict[Key, int] = field(default_factory=dict)
    _count: np.ndarray = field(default_factory=lambda: np.zeros(0))
    _total: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    _square: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    def add(self, runs: Sequence[StateRun], frames: np.ndarray, where: str = "features") -> None:
        """One utterance.  frames (d, T).

        Raises ShapeError for frames of another size, and fewer of them than the runs need; FormatError for values that
        are no numbers.
        """
        if frames.ndim != 2 or frames.shape[0] != self.dim:
            raise ShapeError(f"{where}: matrix of shape {frames.shape}; expected ({self.dim}, frames)")
        if not runs:
            return
        if runs[-1].end > frames.shape[1]:
            raise ShapeError(f"{where}: {frames.shape[1]} frames; expected {runs[-1].end}, as the alignment has")
        which = np.concatenate([np.arange(run.start, run.end) for run in runs])
        values = np.ascontiguousarray(frames.T[which], dtype=np.float64)
        wrong = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if wrong.size:
            raise FormatError(f"{where}: frame {which[wrong[0]]} holds infinity or no number; expected finite values")
        rows = np.array([self.rows.setdefault((run.model, run.state), len(self.rows)) for run in runs])
        self._grow()
        lengths = np.array([run.end - run.start for run in runs])
        of_frame = np.repeat(rows, lengths)
        bounds = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        np.add.at(self._count, of_frame, 1.0)
        np.add.at(self._total, rows, np.add.reduceat(values, bounds))
        np.add.at(self._square, rows, np.add.reduceat(values**2, bounds))

    def _grow(self) -> None:
        """Room for all rows, twice as much as last time where there was too little."""
        have, need = len(self._count), len(self.rows)
        if need > have:
            more = max(need, 2 * have) - have
            self._count = np.concatenate([self._count, np.zeros(more)])
            self._total = np.concatenate([self._total.reshape(have, self.dim), np.zeros((more, self.dim))])
            self._square = np.concatenate([self._square.reshape(have, self.dim), np.zeros((more, self.dim))])

    @property
    def count(self) -> np.ndarray:
        return self._count[: len(self.rows)]

    @property
    def total(self) -> np.ndarray:
        return self._total[: len(self.rows)]

    @property
    def square(self) -> np.ndarray:
        return self._square[: len(self.rows)]

    def models(self) -> list[str]:
        """Every model that was seen, in the order in which it was."""
        return list(dict.fromkeys(model for model, _ in self.rows))

    def select(self, keys: Sequence[Key]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(count, total, square) of some states, in their order."""
        rows = np.array([self.rows[key] for key in keys], dtype=np.int64)
        return self.count[rows], self.total[rows], self.square[rows]

    def variance_floor(self, part: float) -> np.ndarray:
        """(d,): that part of the variance of all frames."""
        number = max(self.count.sum(), 1.0)
        mean = self.total.sum(axis=0) / number
        return part * np.maximum(self.square.sum(axis=0) / number - mean**2, 1e-10)


def gaussians(
    count: np.ndarray, total: np.ndarray, square: np.ndarray, floor: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances (n, d) of clusters; a cluster without frames has mean 0 and the least variance."""
    number = np.maximum(count, 1.0)[:, None]
    mean = total / number
    return mean, np.maximum(square / number - mean**2, floor)


def log_likelihood(count: np.ndarray, total: np.ndarray, square: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """(n,): of each cluster's frames under the one Gaussian that fits them best: -n/2 (d (1 + ln 2 pi) + sum ln v).

    Young, Odell and Woodland 1994, eq. 4, with variances of at least `floor` (d,).
    """
    _, variance = gaussians(count, total, square, floor)
    return -0.5 * count * (total.shape[1] * (1 + np.log(2 * np.pi)) + np.log(variance).sum(axis=1))
