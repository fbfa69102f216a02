"""Statistics for tying: count, sum and sum of squares of the frames of each state of each triphone."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from decoder.tying.runs import StateRun
from readers.errors import FormatError, ShapeError

Key = tuple[str, int]  # model, HTK's number of its state


@dataclass
class Statistics:
    """Counts, sums and sums of squares of the frames of every model's states.

    Parameters
    ----------
    dim : int
        Size d of a feature vector.
    kind : str
        HTK's name of the features, such as MFCC_0_D_A, for the HMM set.
    rows : dict of (str, int) to int
        (model, state) -> its row in the arrays below.

    Attributes
    ----------
    count : (n,) array, float64
        Frames of each state.
    total, square : (n, d) arrays, float64
        Sum and sum of squares of its frames.
    """

    dim: int
    kind: str = "USER"
    rows: dict[Key, int] = field(default_factory=dict)
    _count: np.ndarray = field(default_factory=lambda: np.zeros(0))
    _total: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    _square: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    def add(self, runs: Sequence[StateRun], frames: np.ndarray, where: str = "features") -> None:
        """Add the frames of one utterance.

        Parameters
        ----------
        runs : sequence of StateRun
        frames : (d, T) array
            Features, a column per frame.
        where : str
            Name of the features in messages.

        Raises
        ------
        ShapeError
            For features of another size, or fewer frames than the alignment has.
        FormatError
            For values that are not finite.
        """
        self.require_size(frames.shape, where)
        if not runs:
            return
        if runs[-1].end > frames.shape[1]:
            raise ShapeError(f"{where}: {frames.shape[1]} frames; expected {runs[-1].end}, as the alignment has")
        which = np.concatenate([np.arange(run.start, run.end) for run in runs])
        values = np.ascontiguousarray(frames.T[which], dtype=np.float64)
        wrong = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if wrong.size:
            raise FormatError(f"{where}: frame {which[wrong[0]]} contains infinity or NaN; expected finite values")
        rows = np.array([self.rows.setdefault((run.model, run.state), len(self.rows)) for run in runs])
        self._grow()
        lengths = np.array([run.end - run.start for run in runs])
        of_frame = np.repeat(rows, lengths)
        bounds = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        np.add.at(self._count, of_frame, 1.0)
        np.add.at(self._total, rows, np.add.reduceat(values, bounds))
        np.add.at(self._square, rows, np.add.reduceat(values**2, bounds))

    def merge(self, other: "Statistics") -> None:
        """Add the statistics of other utterances.

        Parameters
        ----------
        other : Statistics
            With the same `dim`.

        Raises
        ------
        ShapeError
            For features of another size.
        """
        self.require_size((other.dim, len(other.rows)), "statistics")
        if not other.rows:
            return
        rows = np.array([self.rows.setdefault(key, len(self.rows)) for key in other.rows], np.int64)
        self._grow()
        self._count[rows] += other.count  # each row occurs once
        self._total[rows] += other.total
        self._square[rows] += other.square

    def require_size(self, shape: tuple[int, ...], where: str = "features") -> None:
        """Check the size of features.

        Parameters
        ----------
        shape : tuple of int
            Of their matrix, a column per frame.
        where : str
            Name of the features in messages.

        Raises
        ------
        ShapeError
            Unless it is (dim, frames).
        """
        if len(shape) != 2 or shape[0] != self.dim:
            raise ShapeError(f"{where}: matrix of shape {shape}; expected ({self.dim}, frames)")

    def trim(self) -> None:
        """Release the memory reserved for more rows, before the statistics are sent to another process."""
        self._count, self._total, self._square = self.count.copy(), self.total.copy(), self.square.copy()

    def _grow(self) -> None:
        """Make room for all rows, at least doubling the arrays."""
        have = len(self._count)
        need = len(self.rows)
        if need > have:
            more = max(need, 2 * have) - have
            self._count = np.concatenate([self._count, np.zeros(more)])
            self._total = np.concatenate([self._total.reshape(have, self.dim), np.zeros((more, self.dim))])
            self._square = np.concatenate([self._square.reshape(have, self.dim), np.zeros((more, self.dim))])

    @property
    def count(self) -> np.ndarray:
        """(n,) frames of each state."""
        return self._count[: len(self.rows)]

    @property
    def total(self) -> np.ndarray:
        """(n, d) sums of the frames."""
        return self._total[: len(self.rows)]

    @property
    def square(self) -> np.ndarray:
        """(n, d) sums of their squares."""
        return self._square[: len(self.rows)]

    def models(self) -> list[str]:
        """Every model that was seen, in order of first occurrence."""
        return list(dict.fromkeys(model for model, _ in self.rows))

    def select(self, keys: Sequence[Key]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(count, total, square) of some states, in their order."""
        rows = np.array([self.rows[key] for key in keys], dtype=np.int64)
        return self.count[rows], self.total[rows], self.square[rows]

    def variance_floor(self, part: float) -> np.ndarray:
        """(d,): a fraction of the variance of all frames."""
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
    """(n,): log-likelihood of each cluster's frames under its best Gaussian, -n/2 (d (1 + ln 2 pi) + sum ln v).

    Young, Odell and Woodland 1994, eq. 4, with variances of at least `floor` (d,).
    """
    _, variance = gaussians(count, total, square, floor)
    return -0.5 * count * (total.shape[1] * (1 + np.log(2 * np.pi)) + np.log(variance).sum(axis=1))
