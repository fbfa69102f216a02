"""A data source in memory, with the interface that training asks of a reader."""

from dataclasses import dataclass

import numpy as np
import pytest

from acoustic.recurrence import compiled_loop
from acoustic.runtime import thread_team


@dataclass
class Minibatch:
    matrices: dict
    num_frames: int


class ArrayReader:
    """Columns of given matrices, shuffled anew in every epoch by (seed, epoch); the last minibatch may be short."""

    def __init__(self, seed: int = 0, **matrices: np.ndarray):
        self.matrices, self.seed = matrices, seed

    def dims(self) -> dict[str, int]:
        return {name: matrix.shape[0] for name, matrix in self.matrices.items()}

    @property
    def num_frames(self) -> int:
        return next(iter(self.matrices.values())).shape[1]

    def minibatches(self, epoch: int = 0, minibatch_size: int = 256, epoch_size: int = 0):
        order = np.random.default_rng((self.seed, epoch)).permutation(self.num_frames)[: epoch_size or None]
        for start in range(0, len(order), minibatch_size):
            columns = order[start : start + minibatch_size]
            matrices = {name: np.asfortranarray(matrix[:, columns]) for name, matrix in self.matrices.items()}
            yield Minibatch(matrices, len(columns))


@pytest.fixture(autouse=True)
def threads_share_all_work(monkeypatch) -> None:
    """Threads also share small loops, and go on to do so on a busy machine."""
    monkeypatch.setattr(compiled_loop, "SHARE_FROM", 0)
    monkeypatch.setattr(thread_team, "LATE", np.inf)


@pytest.fixture(scope="session", autouse=True)
def without_pictures(quick_pictures) -> None:
    """All tests below; those that look at a picture ask for `drawn`."""


@pytest.fixture(scope="session")
def array_reader() -> type[ArrayReader]:
    """The class; called with a seed and named matrices."""
    return ArrayReader


@pytest.fixture(scope="session")
def ring_reader():
    """ring_reader(num_frames, seed): points of two classes, inside and outside a circle of radius 1 around (5, -3)."""

    def make(num_frames: int = 600, seed: int = 0) -> ArrayReader:
        rng = np.random.default_rng((7, seed))
        angle, inside = rng.uniform(0, 2 * np.pi, num_frames), rng.random(num_frames) < 0.5
        radius = np.where(inside, rng.uniform(0, 0.7, num_frames), rng.uniform(1.3, 2, num_frames))
        points = np.array([5 + radius * np.cos(angle), -3 + radius * np.sin(angle)], dtype=np.float32)
        labels = np.zeros((2, num_frames), dtype=np.float32)
        labels[inside.astype(int), np.arange(num_frames)] = 1
        return ArrayReader(seed, features=points, labels=labels)

    return make
