"""What one job does between two averagings: learn from its share of the data, starting from the averaged model.

It runs in another process, often on another machine with the same file system.  It depends on what it is told alone, so
that a job that is run again, anywhere, with as many threads, gives the same.
"""

import contextlib
import pickle
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acoustic.network.model_file import load_model, load_tensors, save_tensors
from acoustic.network.network import Network
from acoustic.runtime.engine_options import engines_with
from acoustic.runtime.thread_team import computing_with
from acoustic.training.learner import Learner, require_finite
from acoustic.training.options import EpochOptions, TrainingOptions
from readers.errors import ArgonautError, ModelError
from readers.minibatches.base import Reader

FORMAT = "argonaut-job"


@dataclass(frozen=True)
class Job:
    """A share of an outer iteration.

    iteration, number: which of them, and which job of it, from 0; start: the averaged model; state: the file with what
    the update rule keeps of it, None: it begins anew; output: where the job's model goes; source: opens the reader;
    share: the reader's epoch, of options.epoch_size frames, that is this job's; values: for this job, its learning rate
    among them; criterion, names: see Learner; engine: see EngineOptions.from_text; directory: what
    relative paths count from.
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
    criterion: str
    names: tuple[str, ...]
    precision: str
    device: str
    threads: int
    engine: str
    directory: Path

    @property
    def title(self) -> str:
        return f"outer iteration {self.iteration + 1}, job {self.number + 1}"


@dataclass(frozen=True)
class JobResult:
    """figures: sums over the job's frames; scalars: what the update rule keeps for all parameters; seconds: that
    learning took, reading the data included."""

    figures: dict[str, float]
    num_frames: int
    scalars: dict[str, float]
    seconds: float


def attempt(job: Job) -> JobResult | Exception:
    """The result of a job, or the fault that ends it wherever it is run.

    What is raised instead (no memory, a file system that does not answer) may go well when it is run again.
    """
    try:
        return run_job(job)
    except (OSError, MemoryError):
        raise
    except ArgonautError as fault:
        return _portable(fault)
    except Exception:
        return RuntimeError(f"{job.title}: {traceback.format_exc()}")


def _portable(fault: ArgonautError) -> ArgonautError:
    """The fault, or one that says the same, as it can be sent to another process."""
    try:
        return pickle.loads(pickle.dumps(fault))
    except Exception:
        return ArgonautError(str(fault))


_alone = threading.Lock()  # directory and threads are the whole process's


def run_job(job: Job) -> JobResult:
    """Learn, and write the model of it.  Raises ArgonautError, OSError."""
    with _alone, contextlib.chdir(job.directory), computing_with(job.threads), engines_with(job.engine):
        reader = _reader(job.source)
        network = load_model(job.start, job.precision, _device(job))
        learner = Learner(network, reader, job.options, job.criterion, list(job.names))
        learner.place = job.title
        if job.state is not None:
            tensors, found = load_tensors(job.state)
            learner.updater.restore(tensors, found.get("scalars", {}), job.state)
        begin = time.perf_counter()
        totals = learner.run(job.share, job.values)
        require_finite(network, job.title)
        seconds = time.perf_counter() - begin
        save_tensors(job.output, _tensors(network, learner, job), {"format": FORMAT})
        scalars = dict(learner.updater.scalars)
        return JobResult(totals.figures, totals.num_frames, scalars, seconds)


def _tensors(network: Network, learner: Learner, job: Job) -> dict[str, Any]:
    """What is averaged: every stored value, and what the update rule keeps if the next job is to have it."""
    to_host = network.backend.to_host
    tensors = {f"value:{node.name}": to_host(node.value) for node in network.stored() if node.value is not None}
    if keeps_state(job.options):
        tensors |= {f"state:{name}": to_host(matrix) for name, matrix in learner.updater.tensors().items()}
    return tensors


def keeps_state(options: TrainingOptions) -> bool:
    """Whether what the update rule keeps of each parameter is averaged, as the parameters are.

    The factors of the natural gradient are not: every job finds its own from its first minibatch on (B.3.2).
    """
    return bool(options.rule.state)


def load_output(path: Path) -> dict[str, Any]:
    """The arrays that a job has written.  Raises ModelError, OSError."""
    tensors, found = load_tensors(path)
    if found.get("format") != FORMAT:
        raise ModelError(f"{path}: {found.get('format')!r}; expected {FORMAT!r}")
    return tensors


def _device(job: Job) -> str:
    """Where a job computes; "gpu" alone gives job J the J-th of the devices that can be seen there, round and round."""
    if job.device != "gpu":
        return job.device
    import cupy

    return f"gpu:{job.number % max(1, cupy.cuda.runtime.getDeviceCount())}"


_open: dict[bytes, Reader] = {}  # the reader of the last job of this process


def _reader(source: Callable[[], Reader]) -> Reader:
    """The reader of a source; it stays open, since the next job here will most likely want it again."""
    key = pickle.dumps((source, Path.cwd()))
    if key not in _open:
        close_reader()
        _open[key] = source()
    return _open[key]


def close_reader() -> None:
    """Close the reader that a job has left open."""
    while _open:
        _open.popitem()[1].close()
