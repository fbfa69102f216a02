"""Trainings that are passes over the data; the state is stored after each, and a run that was stopped goes on."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from readers.common.report import Log, Progress
from readers.errors import ArgonautError, FormatError
from readers.tables.tensor_file import load_tensors, save_tensors

if TYPE_CHECKING:  # imports processes, which recognition does not need
    from readers.common.jobs.runner import Runner


class TrainingState(Protocol):
    """The state of a training between two passes; its history has a row for each pass."""

    @property
    def history(self) -> tuple[dict[str, Any], ...]: ...


LEAST_FRAMES = 3.0  # of a Gaussian, to estimate its mean and variance anew, as HERest's -m
SPLIT = 0.2  # standard deviations between a Gaussian and its halves, as HHEd's MU
State = TypeVar("State", bound=TrainingState)


class PassTraining(ABC, Generic[State]):
    """Trains by passes over shards of the data.

    A subclass sets `runner` and `shards`, and says what a pass does.
    """

    state_format: ClassVar[tuple[str, int]]  # name and version of the file of the state
    pass_kind: ClassVar[str]  # name in a row of the history of what kind of pass it was
    runner: "Runner"
    shards: Sequence[Any]

    @property
    @abstractmethod
    def schedule(self) -> Sequence[Any]:
        """An entry for each pass."""

    @abstractmethod
    def next_pass(self, training: State | None, progress: Progress | None = None) -> State:
        """One pass over the data, and what follows from it; training: None before the first pass."""

    @abstractmethod
    def contents(self) -> dict[str, Any]:
        """What the result depends on, as JSON values by a name for messages."""

    @abstractmethod
    def parts_of(self, training: State) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays and metadata of a state, for its file."""

    @abstractmethod
    def state_of(self, arrays: dict[str, Any], metadata: dict[str, Any], path: Path) -> State:
        """The state that a file holds.  Raises an error of any kind for one that does not fit."""

    def size_of(self, shard: Any) -> int:
        """How many items a shard is, for the progress."""
        return len(shard)

    def sums_of(
        self,
        function: Callable[..., Any],
        progress: Progress | None,
        *arguments: Any,
        shards: Sequence[Any] | None = None,
    ) -> Any:
        """The sums of all shards or of some: function(shard, *arguments), whose results have a method `add`."""
        shards = self.shards if shards is None else shards
        sums = None
        done = 0
        total = sum(map(self.size_of, shards))
        for part, shard in zip(self.runner.results(function, shards, *arguments), shards):
            if sums is None:
                sums = part
            else:
                sums.add(part)
            done += self.size_of(shard)
            if progress:
                progress(done, total)
        return sums

    @cached_property
    def inputs(self) -> dict[str, str]:
        """What the result depends on, as checksums by a name for messages."""
        return {name: hashlib.sha256(json.dumps(value).encode()).hexdigest() for name, value in self.contents().items()}

    def last_pass(self, training: State) -> str:
        """What the last pass was, as a line of a log."""
        row = training.history[-1]
        value = row["log_likelihood_per_frame"]
        likelihood = "" if value is None else f", {value:.4f} per frame"
        number = f"pass {row['pass']} of {len(self.schedule)}"
        return f"{number}: {row[self.pass_kind]}, {row['gaussians']} Gaussians{likelihood}"

    def store(self, training: State, path: Path) -> None:
        """Write the state of a training."""
        arrays, metadata = self.parts_of(training)
        name, version = self.state_format
        history = list(training.history)
        save_tensors(
            path, arrays, {"format": name, "version": version, "inputs": self.inputs, "history": history, **metadata}
        )

    def restore(self, path: Path, log: Log) -> State | None:
        """The state that `store` wrote; None, if there is none or if it is of other inputs."""
        if not path.exists():
            return None
        try:
            arrays, metadata = load_tensors(path)
            if (metadata.get("format"), metadata.get("version")) != self.state_format:
                raise FormatError(f"{path}: not a state of this version")
            changed = [name for name, checksum in self.inputs.items() if metadata["inputs"].get(name) != checksum]
            if changed:
                log(f"{path}: {' and '.join(changed)} changed since; starting again")
                return None
            return self.state_of(arrays, metadata, path)
        except (ArgonautError, LookupError, TypeError, ValueError, AttributeError) as fault:
            log(f"{path}: not usable ({' '.join(str(fault).split())}); starting again")
            return None

    def train(self, path: Path, log: Log, after: Callable[[State], None], progress: Progress | None = None) -> State:
        """All passes; the state is stored after each of them, and a run that was stopped goes on from there.

        Parameters
        ----------
        path : Path
            File of the state.
        log : callable
            Receives lines about earlier states.
        after : callable
            after(training) is called when a pass is stored.
        progress : callable, optional
            progress(done, total) counts items of the data.
        """
        training = self.restore(path, log)
        if training is not None:
            log(f"{len(training.history)} of {len(self.schedule)} passes are done; going on")
        while training is None or len(training.history) < len(self.schedule):
            training = self.next_pass(training, progress)
            self.store(training, path)
            after(training)
        return training


def file_mark(path: str | Path) -> tuple[int, int]:
    """Size and time of the last change of a file, for `PassTraining.contents`."""
    status = Path(path).stat()
    return status.st_size, status.st_mtime_ns


@dataclass
class GaussianSums:
    """Sums over frames, weighted by the posterior probabilities of C Gaussians; those of shards add up.

    Attributes
    ----------
    occupancy : (C,) float64
        Expected number of frames of each Gaussian.
    total : (C, d) float64
        Expected sums of its frames.
    square : (C, d) or (C, d, d) float64
        Expected sums of their squares; with full covariances, of their products, of which only the lower triangles
        are used.
    log_likelihood : float
    frames : int
    """

    occupancy: np.ndarray
    total: np.ndarray
    square: np.ndarray
    log_likelihood: float = 0.0
    frames: int = 0

    def arrays(self) -> tuple[np.ndarray, ...]:
        """The sums that are arrays."""
        return self.occupancy, self.total, self.square

    def add(self, other: Self) -> None:
        """Add the sums of other frames."""
        for sums, more in zip(self.arrays(), other.arrays()):
            sums += more
        self.log_likelihood += other.log_likelihood
        self.frames += other.frames

    def diagonal(self, means: np.ndarray, variances: np.ndarray, floor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return means and variances (C, d) of greatest likelihood, with variances of at least `floor` (d,).

        Gaussians with less than LEAST_FRAMES frames keep the given ones.
        """
        enough = self.occupancy >= LEAST_FRAMES
        count = np.where(enough, self.occupancy, 1.0)[:, None]
        mean = self.total / count
        variance = np.maximum(self.square / count - mean**2, floor)
        return np.where(enough[:, None], mean, means), np.where(enough[:, None], variance, variances)
