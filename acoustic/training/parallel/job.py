"""A job: training on its share of the data between two averagings, starting from the averaged model.

A job runs in another process, often on another machine with the same file system. Its result depends only on its
fields, so a job that is repeated elsewhere with as many threads gives the same result.
"""

import contextlib
import pickle
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from acoustic.network.model_file import load_model
from acoustic.network.network import Network
from acoustic.runtime.engine_options import engines_with
from acoustic.training.evaluation import EvaluationTotals
from acoustic.training.learner import Learner, require_finite
from acoustic.training.options import EpochOptions, TrainingOptions
from readers.common.environment import using_cores
from readers.errors import ArgonautError, ModelError
from readers.minibatches.base import Reader
from readers.tables.tensor_file import load_tensors, save_tensors

FORMAT = "argonaut-job"


@dataclass(frozen=True)
class Job:
    """One job of an outer iteration.

    Attributes
    ----------
    iteration, number : int
        Outer iteration and job, counted from 0.
    start : Path
        The averaged model.
    state : Path or None
        File with the state of the update rule; None starts with a new state.
    output : Path
        Where the resulting parameters are written.
    source : callable
        Opens the reader.
    share : int
        Epoch of the reader, of `options.epoch_size` frames, that is the share of this job.
    options, values : TrainingOptions, EpochOptions
        Options of the job; the learning rate is that of a single job.
    names : tuple of str
        The criterion and the evaluation nodes.
    precision, device, threads, engine
        Where and how to compute; see EngineOptions.from_text.
    directory : Path
        Directory that relative paths refer to.
    """

    iteration: int
    number: int
    start: Path
    state: Path | None
    output: Path
    source: Callable[[], Reader]
    share: int
    options: TrainingOptions
    values: EpochOptions
    names: tuple[str, ...]
    precision: str
    device: str
    threads: int
    engine: str
    directory: Path

    @property
    def place(self) -> str:
        return f"outer iteration {self.iteration + 1}"

    @property
    def title(self) -> str:
        return f"{self.place}, job {self.number + 1}"

    def run(self) -> "JobResult":
        """Train on the share and write the parameters. Raises ArgonautError, OSError."""
        return run_job(self)


@dataclass(frozen=True)
class JobResult:
    """Result of a job: sums over its frames, shared numbers of the update rule, and seconds with reading the data."""

    totals: EvaluationTotals
    scalars: dict[str, float]
    seconds: float


class AnyJob(Protocol):
    """What runs in another process: see Job and GradientJob."""

    @property
    def number(self) -> int: ...

    @property
    def place(self) -> str: ...

    @property
    def title(self) -> str: ...

    def run(self) -> Any: ...


def attempt(job: AnyJob) -> Any:
    """Run a job and return its result, or the error that would end it anywhere.

    Errors that may not occur again (memory, file system) are raised.
    """
    try:
        return job.run()
    except (OSError, MemoryError):
        raise
    except ArgonautError as fault:
        return _portable(fault)
    except Exception:
        return RuntimeError(f"{job.title}: {traceback.format_exc()}")


def _portable(fault: ArgonautError) -> ArgonautError:
    """Return the error, or one with the same text, in a form that can be sent to another process."""
    try:
        return pickle.loads(pickle.dumps(fault))
    except Exception:
        return ArgonautError(str(fault))


ALONE = threading.Lock()  # directory and number of threads belong to the process


def run_job(job: Job) -> JobResult:
    """Train on the share of a job and write the parameters. Raises ArgonautError, OSError."""
    with ALONE, contextlib.chdir(job.directory), using_cores(job.threads), engines_with(job.engine):
        reader = _reader(job.source)
        network = load_model(job.start, job.precision, device_of(job))
        learner = Learner(network, reader, job.options, list(job.names))
        learner.place = job.title
        if job.state is not None:
            tensors, metadata = load_tensors(job.state)
            learner.updater.restore(tensors, metadata.get("scalars", {}), job.state)
        begin = time.perf_counter()
        totals = learner.run(job.share, job.values)
        require_finite(network, job.title)
        seconds = time.perf_counter() - begin
        save_tensors(job.output, _tensors(network, learner, job), {"format": FORMAT})
        return JobResult(totals, dict(learner.updater.scalars), seconds)


def _tensors(network: Network, learner: Learner, job: Job) -> dict[str, Any]:
    """Return the matrices to average: stored values, and the state of the update rule if jobs continue it."""
    to_host = network.backend.to_host
    tensors = {f"value:{name}": to_host(value) for name, value in network.stored_values().items()}
    if keeps_state(job.options):
        tensors |= {f"state:{name}": to_host(matrix) for name, matrix in learner.updater.tensors().items()}
    return tensors


def keeps_state(options: TrainingOptions) -> bool:
    """Return whether the state of the update rule is averaged like the parameters.

    The factors of the natural gradient are not: every job estimates its own from its first minibatch. [B.3.2]
    """
    return bool(options.rule.state)


def load_output(path: Path) -> dict[str, Any]:
    """Read the arrays that a job has written. Raises ModelError, OSError."""
    tensors, metadata = load_tensors(path)
    if metadata.get("format") != FORMAT:
        raise ModelError(f"{path}: {metadata.get('format')!r}; expected {FORMAT!r}")
    return tensors


def device_of(job: Any) -> str:
    """Return the device of a job; "gpu" alone distributes the jobs over the visible devices."""
    if job.device != "gpu":
        return job.device
    import cupy

    return f"gpu:{job.number % max(1, cupy.cuda.runtime.getDeviceCount())}"


_open: dict[bytes, Reader] = {}  # reader of the last job of this process


def _reader(source: Callable[[], Reader]) -> Reader:
    """Return the reader of a source, which stays open for the next job of this process."""
    key = pickle.dumps((source, Path.cwd()))
    if key not in _open:
        close_reader()
        _open[key] = source()
    return _open[key]


def close_reader() -> None:
    """Close the reader that stayed open after a job."""
    while _open:
        _open.popitem()[1].close()
