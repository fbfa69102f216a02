"""The points of the demo: two classes in the plane, separated by a wave, as lines `x y label`.

The book (1.2) shows its data only as a picture (Fig. 1.1); this is data of the same kind, not the same data.
"""

from pathlib import Path

import numpy as np

from readers.common.files import write_lines
from readers.tables.text_matrix import read_text_matrix

LABELS = ("0", "1")
NUM_TRAIN, NUM_TEST = 3000, 1000
REGION = (-1.0, 1.0)  # range of both coordinates
BLUR = 0.04  # standard deviation of the noise on a point's height before its class is determined
GRID_STEPS = 101  # grid points in each direction


def boundary(x: np.ndarray) -> np.ndarray:
    """Return the height of the wave that separates the classes."""
    return 0.6 * np.sin(np.pi * x)


def make_points(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return points (count, 2) float64 and classes (count,) int64, half of them of each class; count is even.

    Points near the wave may have the other class.
    """
    points: list[np.ndarray] = []
    for label in range(2):
        accepted = np.empty((0, 2))
        while len(accepted) < count // 2:
            drawn = rng.uniform(*REGION, (count, 2))
            above = drawn[:, 1] + rng.normal(0.0, BLUR, count) > boundary(drawn[:, 0])
            accepted = np.concatenate([accepted, drawn[above == bool(label)]])
        points.append(accepted[: count // 2])
    order = rng.permutation(2 * (count // 2))
    classes = np.repeat([0, 1], count // 2)
    return np.concatenate(points)[order], classes[order]


def grid_points() -> np.ndarray:
    """Return (GRID_STEPS^2, 2); x varies fastest."""
    steps = np.linspace(*REGION, GRID_STEPS)
    return np.stack([np.tile(steps, GRID_STEPS), np.repeat(steps, GRID_STEPS)], axis=1)


def write_points(path: Path, points: np.ndarray, classes: np.ndarray | None = None) -> None:
    """Write one point per line, `x y` and, if there are classes, its label."""
    labels = [""] * len(points) if classes is None else [f" {LABELS[number]}" for number in classes]
    write_lines(path, (f"{x:.6f} {y:.6f}{label}" for (x, y), label in zip(points.tolist(), labels)))


def read_points(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read (points, classes) from a file that `write_points` wrote with classes."""
    table = read_text_matrix(path)
    return table[:, :2], table[:, 2].astype(np.int64)


def write_data(directory: Path, seed: int) -> None:
    """Write SimpleDataTrain.txt, SimpleDataTest.txt, SimpleDataPlane.txt (grid) and SimpleMapping.txt (labels)."""
    rng = np.random.default_rng(seed)
    for name, count in (("SimpleDataTrain", NUM_TRAIN), ("SimpleDataTest", NUM_TEST)):
        write_points(directory / f"{name}.txt", *make_points(count, rng))
    write_points(directory / "SimpleDataPlane.txt", grid_points())
    write_lines(directory / "SimpleMapping.txt", LABELS)
