"""A job that computes the gradient of its share of one minibatch.

The process keeps nothing that the next job depends on: the state of sequences that continue comes and goes with the
jobs, so a lost job can be repeated anywhere.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.engine.engine import Engine
from acoustic.engine.execution.gradient_sink import GradientSink
from acoustic.network.model_file import load_model
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.nodes.sequence_state import SequenceState
from acoustic.runtime.engine_options import engines_with
from acoustic.training.evaluation import scalar
from acoustic.training.parallel.job import ALONE, device_of
from acoustic.training.parallel.shares import Share
from readers.common.environment import using_cores


@dataclass(frozen=True)
class GradientJob:
    """One job of a minibatch.

    Attributes
    ----------
    number : int
        Counted from 0.
    place : str
        The minibatch, for messages.
    network : Path
        File of the network.
    key : str
        Identifies the content of that file.
    values : dict of str to array
        The parameters that training changes.
    share : Share
    state : SequenceState or None
        What the sequences of the share continue.
    settings : dict
        Dropout rate and seed, as in Engine.forward.
    names : tuple of str
        The criterion and the evaluation nodes.
    learns : bool
        Whether gradients are wanted.
    by_columns : bool
        Whether gradients may consist of the columns that are not zero.
    precision, device, threads, engine
        Where and how to compute; see EngineOptions.from_text.
    directory : Path
        Directory that relative paths refer to.
    """

    number: int
    place: str
    network: Path
    key: str
    values: dict[str, np.ndarray]
    share: Share
    state: SequenceState | None
    settings: dict[str, Any]
    names: tuple[str, ...]
    learns: bool
    by_columns: bool
    precision: str
    device: str
    threads: int
    engine: str
    directory: Path

    @property
    def title(self) -> str:
        return f"{self.place}, job {self.number + 1}"

    def run(self) -> "GradientResult":
        """Compute figures and gradients. Raises ArgonautError, OSError."""
        quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")  # the learner checks the criterion
        working_directory = contextlib.chdir(self.directory)
        with ALONE, working_directory, using_cores(self.threads), engines_with(self.engine), quiet:
            return self._compute(*_opened(self))

    def _compute(self, network: Network, engine: Engine) -> "GradientResult":
        for name, value in self.values.items():
            network[name].assign(network.backend.asarray(value))
        share = self.share
        criterion = self.names[0]
        engine.sequence_state = self.state
        engine.forward(
            share.matrices,
            training=True,
            criterion=criterion,
            layout=share.layout,
            first_column=share.first_column,
            **self.settings,
        )
        figures = {name: scalar(engine, name) for name in self.names}
        gradients = Gradients(network, self.by_columns)
        if self.learns:
            engine.backward(criterion, gradients)
        return GradientResult(figures, gradients.whole, gradients.columns, _on_host(network, engine.sequence_state))


@dataclass(frozen=True)
class GradientResult:
    """Result of a job.

    Attributes
    ----------
    figures : dict of str to float
        Values of the criterion and the evaluation nodes.
    whole : dict of str to (rows, cols) array
        Gradients by parameter.
    columns : dict of str to (int array (n,), array (rows, n))
        Gradients that are zero except in some columns, in ascending order.
    state : SequenceState or None
        What the next minibatch of these sequences continues.
    """

    figures: dict[str, float]
    whole: dict[str, np.ndarray]
    columns: dict[str, tuple[np.ndarray, np.ndarray]]
    state: SequenceState | None


def _on_host(network: Network, state: SequenceState | None) -> SequenceState | None:
    if state is None:
        return None
    return SequenceState(state.length, {name: network.backend.to_host(held) for name, held in state.held.items()})


class Gradients(GradientSink):
    """Keeps copies of all gradients on the host."""

    def __init__(self, network: Network, by_columns: bool) -> None:
        self._to_host = network.backend.to_host
        self.takes_touched = by_columns
        self.whole: dict[str, np.ndarray] = {}
        self.columns: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def __call__(self, node: Node, gradient: Any) -> None:
        self.whole[node.name] = np.array(self._to_host(gradient), order="F")

    def touched(self, node: Node, columns: Any, fill: Callable[[slice], Any]) -> None:
        gradient = np.array(self._to_host(fill(slice(0, len(columns)))), order="F")
        self.columns[node.name] = np.array(self._to_host(columns)), gradient


_open: dict[str, tuple[Network, Engine]] = {}  # of the last training of this process


def _opened(job: GradientJob) -> tuple[Network, Engine]:
    """Return the network and its engine, which stay in memory for the next minibatch."""
    key = f"{job.key} {job.names} {job.threads}"
    if key not in _open:
        _open.clear()
        network = load_model(job.network, job.precision, device_of(job))
        _open[key] = network, Engine(network, job.names, threads=job.threads)
    return _open[key]
