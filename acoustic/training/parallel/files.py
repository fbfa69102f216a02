"""Files of a training by several jobs: the averaged model after every outer iteration, in their own directory.

    MODEL.parallel/model.K           the network after K outer iterations; 0: before the first
    MODEL.parallel/model.K.ckp       state of the update rule and position in the epoch
    MODEL.parallel/job.K.J           result of job J from model K; removed when model K + 1 exists
    MODEL.parallel/network           the network that the jobs of DataParallelSGD read when they start
    MODEL.parallel/history.jsonl     one JSON object per outer iteration: see ParallelLearner

A checkpoint is written before its model, as in state/checkpoint.py.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from readers.errors import ModelError
from readers.tables.tensor_file import load_tensors, save_tensors

FORMAT, VERSION = "argonaut-outer-iteration", 1
NAME = re.compile(r"(network|model\.(\d+)(\.ckp)?|job\.(\d+)\.\d+|\..*\.tmp)")


@dataclass
class Iteration:
    """State of a training after `number` outer iterations.

    plan: what the iterations of this epoch have in common; figures, num_frames: sums over the epoch so far; tensors,
    scalars: state of the update rule.
    """

    number: int
    plan: dict[str, Any]
    figures: dict[str, float]
    num_frames: int
    tensors: dict[str, np.ndarray]
    scalars: dict[str, float]


class IterationFiles:
    """The files in a directory, of which `keep` averaged models are kept."""

    def __init__(self, directory: str | Path, keep: int):
        self.directory = Path(directory)
        self.keep = keep
        self.history = self.directory / "history.jsonl"
        self.network = self.directory / "network"

    def model(self, number: int) -> Path:
        return self.directory / f"model.{number}"

    def checkpoint(self, number: int) -> Path:
        return self.directory / f"model.{number}.ckp"

    def output(self, number: int, job: int) -> Path:
        return self.directory / f"job.{number}.{job}"

    def models(self) -> list[Path]:
        """Return the paths of the existing averaged models, in order."""
        return [self.model(number) for number in sorted(self._numbers())]

    def _numbers(self) -> list[int]:
        matches = [NAME.fullmatch(path.name) for path in self.directory.glob("model.*")]
        return [int(match.group(2)) for match in matches if match and not match.group(3)]

    def save(self, network: Network, iteration: Iteration) -> None:
        """Write checkpoint and model of an iteration, and remove the files that it replaces."""
        state = {name: value for name, value in vars(iteration).items() if name != "tensors"}
        metadata = {"format": FORMAT, "version": VERSION, **state}
        save_tensors(self.checkpoint(iteration.number), iteration.tensors, metadata)
        save_model(network, self.model(iteration.number))
        for number in self._numbers():
            if number < iteration.number:
                self.checkpoint(number).unlink(missing_ok=True)
            if number <= iteration.number - self.keep:
                self.model(number).unlink(missing_ok=True)
        self.remove_outputs()

    def remove_outputs(self) -> None:
        """Remove the results of jobs of all iterations."""
        for path in list(self.directory.glob("job.*")):
            path.unlink(missing_ok=True)

    def discard_after(self, number: int) -> None:
        """Remove the models of later iterations, the latest first; -1: of all."""
        for later in sorted(self._numbers(), reverse=True):
            if later > number:
                self.model(later).unlink(missing_ok=True)
                self.checkpoint(later).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove all files of a training."""
        for path in list(self.directory.glob("*")) + list(self.directory.glob(".*.tmp")):
            if path.is_file() and (NAME.fullmatch(path.name) or path == self.history):
                path.unlink(missing_ok=True)

    def newest(self, before: int, last: int) -> Iteration | None:
        """Return the newest iteration in (before, last] whose model and checkpoint exist, or None."""
        for number in sorted(self._numbers(), reverse=True):
            if before < number <= last and self.checkpoint(number).exists():
                return self.load(number)
        return None

    def load(self, number: int) -> Iteration:
        """Read an iteration. Raises ModelError if its checkpoint is damaged."""
        path = self.checkpoint(number)
        tensors, metadata = load_tensors(path)
        if (metadata.get("format"), metadata.get("version")) != (FORMAT, VERSION):
            raise ModelError(
                f"{path}: {metadata.get('format')!r} version {metadata.get('version')!r}; expected {FORMAT!r} version "
                f"{VERSION}"
            )
        try:
            figures = {str(name): float(value) for name, value in metadata["figures"].items()}
            frames = int(metadata["num_frames"])
            scalars = dict(metadata["scalars"])
            return Iteration(number, dict(metadata["plan"]), figures, frames, tensors, scalars)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as fault:
            raise ModelError(f"{path}: damaged ({fault}); expected plan, figures, num_frames and scalars") from fault
