"""The objective of averaged models, against the training data they have seen and the time on N machines."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from readers.common.files import atomic_write
from readers.errors import FormatError

CRITERION, ERROR = "CrossEntropyWithSoftmax", "EvalErrorPrediction"
MOST_POINTS = 20  # per curve
BLOCK = 4096  # frames at a time


@dataclass(frozen=True)
class Point:
    """A model after some outer iterations and epochs.

    objectives: log probability per frame, and errors: fraction of wrong frames, for a part of the training set and the
    development set.
    """

    iterations: int
    epochs: float
    train_objective: float
    dev_objective: float
    dev_error: float


def measured_iterations(count: int, most: int = MOST_POINTS) -> list[int]:
    """Return the outer iterations after which a run of `count` is measured: evenly spaced, including the last one."""
    return sorted({round(k * count / min(count, most)) for k in range(1, min(count, most) + 1)})


def job_seconds(rows: Sequence[dict]) -> list[float]:
    """Return the time of each job of a run."""
    return [job["seconds"] for row in rows for job in row["jobs"]]


def iteration_seconds(runs: Sequence[Sequence[dict]]) -> float:
    """Estimate the time of an outer iteration with one machine per job, from the runs of one method.

    The time of a job is the lower quartile of all jobs, to reduce the influence of other load on the machine; that of
    the averaging is the median.
    """
    jobs = [seconds for rows in runs for seconds in job_seconds(rows)]
    averaging = [row["averaging_seconds"] for rows in runs for row in rows]
    return float(np.quantile(jobs, 0.25) + np.median(averaging))


def measure(models: dict[int, Path], rows: Sequence[dict], readers: Sequence[Callable]) -> list[Point]:
    """Evaluate models, given by their number of outer iterations, on the training part and the development set.

    rows: history of the run; readers: functions that open the two sets.
    """
    from acoustic.engine.engine import Engine
    from acoustic.network.model_file import load_model
    from acoustic.training.evaluation import sum_figures

    per_epoch = rows[-1]["iteration"] / rows[-1]["epoch"]
    points = []
    sets = []
    for open_one in readers:
        with open_one() as reader:
            sets.append(list(reader.minibatches(0, BLOCK, 0)))
    for count, path in sorted(models.items()):
        engine = Engine(load_model(path), [CRITERION, ERROR])
        train, dev = (sum_figures(engine, minibatches, [CRITERION, ERROR]).averages() for minibatches in sets)
        points.append(Point(count, count / per_epoch, -train[CRITERION], -dev[CRITERION], dev[ERROR]))
    return points


def write_curve(path: Path, points: Sequence[Point]) -> None:
    with atomic_write(path, "w") as file:
        file.writelines(json.dumps(asdict(point)) + "\n" for point in points)


def read_curve(path: Path) -> list[Point]:
    """Read a file of `write_curve`.  Raises FormatError for other files."""
    try:
        return [Point(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except (ValueError, TypeError) as fault:
        raise FormatError(f"{path}: {fault}; expected the result of the training stage; repeat that stage") from fault
