"""The objective of averaged models, against the training data they have seen and the time on N machines."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from readers.common.files import atomic_write
from readers.errors import FormatError

CRITERION, ERROR = "CrossEntropyWithSoftmax", "EvalErrorPrediction"
MOST_POINTS = 20  # of a curve
BLOCK = 4096  # frames at a time


@dataclass(frozen=True)
class Point:
    """A model after some outer iterations, and so many epochs; objectives: log probability per frame, error: share of
    wrong frames, of a part of the training set and of the development set.
    """

    iterations: int
    epochs: float
    train_objective: float
    dev_objective: float
    dev_error: float


def measured_iterations(count: int, most: int = MOST_POINTS) -> list[int]:
    """The outer iterations after which a run of `count` is measured: evenly, the last among them."""
    return sorted({round(k * count / min(count, most)) for k in range(1, min(count, most) + 1)})


def job_seconds(rows: Sequence[dict]) -> list[float]:
    """What each job of a run took."""
    return [job["seconds"] for row in rows for job in row["jobs"]]


def iteration_seconds(runs: Sequence[Sequence[dict]]) -> float:
    """What an outer iteration takes where each job has a machine of its own, by the runs of one method.

    A job's time is the lower quartile of all, so that what else ran on the machine counts little; averaging's is the
    median.
    """
    jobs = [seconds for rows in runs for seconds in job_seconds(rows)]
    averaging = [row["averaging_seconds"] for rows in runs for row in rows]
    return float(np.quantile(jobs, 0.25) + np.median(averaging))


def measure(models: dict[int, Path], rows: Sequence[dict], readers: Sequence[Callable]) -> list[Point]:
    """Evaluate models, by the outer iterations they have seen, on the training part and the development set.

    rows: the run's history; readers: open the two.
    """
    from acoustic.engine.engine import Engine
    from acoustic.network.model_file import load_model
    from acoustic.training.evaluation import evaluate

    per_epoch = rows[-1]["iteration"] / rows[-1]["epoch"]
    points = []
    sets = []
    for open_one in readers:
        with open_one() as reader:
            sets.append(list(reader.minibatches(0, BLOCK, 0)))
    for count, path in sorted(models.items()):
        engine = Engine(load_model(path), [CRITERION, ERROR])
        train, dev = (evaluate(engine, minibatches, [CRITERION, ERROR]).averages() for minibatches in sets)
        points.append(Point(count, count / per_epoch, -train[CRITERION], -dev[CRITERION], dev[ERROR]))
    return points


def write_curve(path: Path, points: Sequence[Point]) -> None:
    with atomic_write(path, "w") as file:
        file.writelines(json.dumps(asdict(point)) + "\n" for point in points)


def read_curve(path: Path) -> list[Point]:
    """Raises FormatError for what `write_curve` did not write."""
    try:
        return [Point(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except (ValueError, TypeError) as fault:
        raise FormatError(f"{path}: {fault}; expected what the training stage wrote; run it again") from fault
