"""Readers that jobs in other processes open, some of which come to grief there."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.network.network import Network
from acoustic.training.options import TrainingOptions
from acoustic.training.parallel.job import attempt
from readers.config.config import Config
from readers.errors import FormatError
from readers.minibatches.base import Minibatch
from readers.sources.examples.example_reader import ExampleReader
from readers.sources.examples.example_writer import write_examples

DIM, CLASSES = 6, 4


def write_task(path: Path, count: int, seed: int = 0) -> None:
    """Archives of points whose class is the largest of a few linear functions of them."""
    rng = np.random.default_rng(seed)
    features = np.asfortranarray(rng.standard_normal((DIM, count)).astype(np.float32))
    classes = (np.random.default_rng(99).standard_normal((CLASSES, DIM)) @ features).argmax(axis=0)
    labels = np.asfortranarray(np.eye(CLASSES, dtype=np.float32)[:, classes])
    minibatch = Minibatch({"features": features, "labels": labels}, {"labels": classes}, count)
    write_examples(path, [minibatch], count, compress=False)


def opened(path: Path) -> ExampleReader:
    return ExampleReader(Config.from_text(f"reader=[file={path}]", "p.cntk").block("reader"))


class KilledOnce(ExampleReader):
    """Kills its process at a position of the sweeps, unless that has happened before."""

    def __init__(self, path: Path, position: int, mark: Path):
        super().__init__(Config.from_text(f"reader=[file={path}]", "p.cntk").block("reader"))
        self.position, self.mark = position, mark

    def assemble(self, position: int, size: int) -> Minibatch:
        if position <= self.position < position + size and not self.mark.exists():
            self.mark.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return super().assemble(position, size)


def killed_at(title: str, mark: Path, job):
    """Run a job; the process of the one with this title is killed once."""
    if job.title == title and not mark.exists():
        mark.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return attempt(job)


class KilledAlways(ExampleReader):
    """Kills its process."""

    def __init__(self, path: Path):
        super().__init__(Config.from_text(f"reader=[file={path}]", "p.cntk").block("reader"))

    def assemble(self, position: int, size: int) -> Minibatch:
        os.kill(os.getpid(), signal.SIGKILL)


class Sleeping(ExampleReader):
    """Says which process it is in, and gives nothing for a long time."""

    def __init__(self, path: Path, mark: Path):
        super().__init__(Config.from_text(f"reader=[file={path}]", "p.cntk").block("reader"))
        self.mark = mark

    def assemble(self, position: int, size: int) -> Minibatch:
        self.mark.write_text(str(os.getpid()))
        time.sleep(300)
        return super().assemble(position, size)


class Faulty(ExampleReader):
    """Raises at a position: `fault` is a class of exceptions."""

    def __init__(self, path: Path, position: int, fault: type[Exception] = FormatError):
        super().__init__(Config.from_text(f"reader=[file={path}]", "p.cntk").block("reader"))
        self.position, self.fault = position, fault

    def assemble(self, position: int, size: int) -> Minibatch:
        if position <= self.position < position + size:
            raise self.fault("a bad disk")
        return super().assemble(position, size)


def small_network(seed: int = 0, dropout: bool = False, device: str = "cpu") -> Network:
    options = SimpleNetworkOptions(
        (DIM, 8, CLASSES), layer_types=("Tanh",), eval_criterion="ErrorPrediction", with_dropout=dropout
    )
    return build_simple_network(options, device=device, seed=seed)


def small_options(max_epochs: int = 2, **changes) -> TrainingOptions:
    values = {"learning_rates_per_minibatch": 0.2, "minibatch_size": 25, "momentum_per_minibatch": 0.5}
    return TrainingOptions(max_epochs, **(values | changes))
