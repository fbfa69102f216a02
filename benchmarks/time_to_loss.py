"""Seconds of training until a development loss: momentum SGD against natural gradient, on the network of recipe an4.

    python -m benchmarks.time_to_loss exp/an4 [--every N] [--copies] [--picture FILE] [--one-thread] [--trials]
                                              [--momentum RATE:RATE:EPOCHS] [--natural RATE:RATE:EPOCHS]

uses the lists and labels of `argonaut recipe an4 --out exp/an4`, and its network, minibatch size and dropout.  The
training data are the recordings without their warped copies, or with them (--copies), or every N-th of them (--every).
The two trainings take turns in one process: after every quarter of an epoch, the one that has used less CPU time goes
on.  Validation is not counted.  Each side has its own learning rates, those of the best of its --trials: for momentum
SGD the lowest development loss, for natural gradient the least time to that loss.  --trials runs all of them, one after
the other, and compares the best.

`RATIO ngsgd-time-to-loss`: seconds of momentum SGD to its lowest development loss over those of natural gradient to the
same loss.  On a machine with other work, see the ratio of the CPU times.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.training import ONE_THREAD, VARIABLES, environment, threads

CONFIG = Path(__file__).parents[1] / "recipes" / "an4" / "config" / "an4.cntk"
FRAMES = 237568  # of an epoch
PARTS = 4  # of an epoch; the development loss is computed after each
MOMENTUM, NATURAL = "momentum SGD", "natural gradient"
NEARBY = (0.0, 0.01, 0.02, 0.05)  # losses to compare at, relative to the lowest of momentum SGD


@dataclass(frozen=True)
class Plan:
    """One way to train: learning rates per minibatch, decreasing exponentially from `first` to `last`, and epochs."""

    side: str
    first: float
    last: float
    epochs: int

    def __str__(self) -> str:
        return f"{self.side}, rate {self.first:g} to {self.last:g} in {self.epochs} epochs"

    @property
    def text(self) -> str:
        """As on the command line."""
        return f"{self.first:g}:{self.last:g}:{self.epochs}"

    @property
    def settings(self) -> str:
        """What stands in the block SGD."""
        rule = "gradUpdateType=NaturalGradient;momentumPerMB=0" if self.side == NATURAL else "momentumPerMB=0.9"
        return f"{rule};learningRatesPerMB={self.first};finalLearningRate={self.last};maxEpochs={PARTS * self.epochs}"


def plan_of(side: str, text: str) -> Plan:
    """Return the plan of a text such as 1:0.05:8; raise ArgumentTypeError."""
    try:
        first, last, epochs = text.split(":")
        plan = Plan(side, float(first), float(last), int(epochs))
    except ValueError:
        plan = None
    if plan is None or not (plan.first > 0 and plan.last > 0 and plan.epochs > 0):
        raise argparse.ArgumentTypeError(f"{text}; expected two learning rates and epochs, such as 1:0.05:8")
    return plan


TRIALS = (
    Plan(MOMENTUM, 0.5, 0.025, 8),
    Plan(MOMENTUM, 1.0, 0.05, 8),
    Plan(MOMENTUM, 2.0, 0.1, 8),
    Plan(NATURAL, 1.0, 0.05, 3),
    Plan(NATURAL, 1.0, 0.05, 4),
)
CHOSEN = (TRIALS[1], TRIALS[4])


@dataclass(frozen=True)
class Point:
    """A training after some frames; seconds of training without validation; losses: cross entropy of a frame."""

    frames: int
    wall: float
    cpu: float
    training_loss: float
    loss: float


def seconds_to(points: Iterable[Point], loss: float, clock: str) -> float | None:
    """Return the seconds, wall or cpu, until a development loss is reached; None if it is not."""
    return next((getattr(point, clock) for point in points if point.loss <= loss), None)


def lowest(points: Sequence[Point]) -> float:
    """Return the lowest development loss."""
    return min(point.loss for point in points)


def compare(momentum: Sequence[Point], natural: Sequence[Point]) -> list[str]:
    """Return a line for each of the losses near the lowest of momentum SGD, and the ratios at that."""
    best, lines, ratios = lowest(momentum), [], {}
    lines.append(f"lowest development loss: {MOMENTUM} {best:.4f}, {NATURAL} {lowest(natural):.4f}")
    for near in NEARBY:
        parts = []
        for clock in ("wall", "cpu"):
            ours, theirs = (seconds_to(points, best * (1 + near), clock) for points in (natural, momentum))
            ratios.setdefault(clock, theirs / ours if ours else 0.0)
            found = f"{ours:.0f}, ratio {theirs / ours:.2f}" if ours else "not reached"
            parts.append(f"{clock} seconds {theirs:.0f} to {found}")
        lines.append(f"  loss {best * (1 + near):.4f} (+{100 * near:g} %): {'; '.join(parts)}")
    suffix = "" if threads() > 1 else "-one-thread"
    lines.append(f"RATIO ngsgd-cpu-time-to-loss{suffix} {ratios['cpu']:.2f}")
    return [*lines, f"RATIO ngsgd-time-to-loss{suffix} {ratios['wall']:.2f}"]


class Training:
    """A training of the network of recipe an4, a quarter of an epoch at a time."""

    def __init__(self, plan: Plan, experiment: Path, scp: Path, seed: int) -> None:
        from acoustic.actions.described import described_network
        from acoustic.descriptions.opening import open_network
        from acoustic.training.configuration import training_options
        from acoustic.training.trainer import Trainer
        from readers.config.config import load_config
        from readers.minibatches.base import open_reader

        every = f"epochSize={FRAMES // PARTS};useAllDataForPreComputedNode=true"
        changes = f"AN4_Train=[SGD=[{every};{plan.settings}];reader=[features=[scpFile={scp}]]]"
        config = load_config([f"configFile={CONFIG}", f"ExpDir={experiment}", changes]).block("AN4_Train")
        options = replace(training_options(config.block("SGD")), seed=seed)
        described = described_network(config)
        reader, cv_reader = (open_reader(config.block(name), seed) for name in ("reader", "cvReader"))
        self.plan, self.points = plan, []
        network = open_network(described, "float", "cpu", seed)
        self._trainer = Trainer(network, reader, options, cv_reader, make_learner=timed_learner())
        self._trainer.prepare(None)

    @property
    def cpu(self) -> float:
        """Seconds so far."""
        return self.points[-1].cpu if self.points else 0.0

    @property
    def finished(self) -> bool:
        return len(self.points) == PARTS * self.plan.epochs

    def go_on(self) -> Point:
        """Train for another part of an epoch."""
        trainer = self._trainer
        trainer.run_epoch(len(self.points))
        row, learner = trainer.history[-1], trainer.learner
        losses = (row[data][trainer.criterion] for data in ("training", "validation"))
        self.points.append(Point(row["total_samples"], learner.wall, learner.cpu, *losses))
        return self.points[-1]


def timed_learner() -> type:
    """A Learner that adds up the seconds of its passes."""
    from acoustic.training.learner import Learner

    class TimedLearner(Learner):
        wall = cpu = 0.0

        def run(self, *arguments: Any, **options: Any) -> Any:
            wall, cpu = time.perf_counter(), time.process_time()
            totals = super().run(*arguments, **options)
            self.wall += time.perf_counter() - wall
            self.cpu += time.process_time() - cpu
            return totals

    return TimedLearner


def train(plans: Sequence[Plan], make: Callable[[Plan], Training]) -> list[list[Point]]:
    """Train by all plans, taking turns; print a line for each part of an epoch and return the points of each plan."""
    trainings = [make(plan) for plan in plans]
    for training in trainings:
        print(f"  {training.plan}")
    print("  side              epoch   wall s    CPU s  training loss  development loss")
    while waiting := [training for training in trainings if not training.finished]:
        training = min(waiting, key=lambda one: one.cpu)
        point = training.go_on()
        print(
            f"  {training.plan.side:16} {len(training.points) / PARTS:6.2f} {point.wall:8.1f} {point.cpu:8.1f} "
            f"{point.training_loss:14.4f} {point.loss:17.4f}",
            flush=True,
        )
    return [training.points for training in trainings]


def try_all(make: Callable[[Plan], Training]) -> tuple[list[Plan], list[list[Point]]]:
    """Train by all TRIALS; return the best plan and its points of either side, momentum SGD first."""
    found = {plan: train([plan], make)[0] for plan in TRIALS}
    momentum = min((plan for plan in TRIALS if plan.side == MOMENTUM), key=lambda plan: lowest(found[plan]))
    best = lowest(found[momentum])
    for plan, points in found.items():
        cpu = seconds_to(points, best, "cpu")
        reached = "not reached" if cpu is None else f"after {cpu:.0f} s of CPU time"
        print(f"  {plan}: lowest loss {lowest(points):.4f}; {best:.4f} {reached}")
    others = [plan for plan in TRIALS if plan.side == NATURAL]
    natural = min(others, key=lambda plan: (seconds_to(found[plan], best, "cpu") or float("inf"), lowest(found[plan])))
    return [momentum, natural], [found[momentum], found[natural]]


def draw(plans: Sequence[Plan], curves: Sequence[Sequence[Point]], path: Path) -> None:
    """Draw the losses against the seconds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axis, clock, title in zip(axes, ("wall", "cpu"), ("seconds", "seconds of CPU time")):
        for number, (plan, points) in enumerate(zip(plans, curves)):
            times = [getattr(point, clock) for point in points]
            axis.plot(times, [point.loss for point in points], f"C{number}", label=f"{plan.side}, development")
            axis.plot(times, [point.training_loss for point in points], f"C{number}:", label=f"{plan.side}, training")
        best = lowest(curves[0])
        axis.axhline(best, color="0.6", linewidth=0.8)
        axis.set(xlabel=title, ylim=(0.8 * best, 2 * best))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("cross entropy of a frame")
    axes[1].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main(argv: list[str] | None = None) -> int:
    """Print the losses over the seconds of both sides, and the ratio."""
    if any(os.environ.get(name) != str(threads()) for name in VARIABLES):
        command = [sys.executable, "-m", "benchmarks.time_to_loss", *sys.argv[1:]]
        return subprocess.run(command, env=environment()).returncode
    parser = argparse.ArgumentParser(prog="python -m benchmarks.time_to_loss", description=__doc__.splitlines()[0])
    parser.add_argument("experiment", type=Path, nargs="?", default=Path("exp/an4"), help="output of recipe an4")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="train on every N-th recording (1)")
    parser.add_argument("--copies", action="store_true", help="also train on the warped copies")
    parser.add_argument("--trials", action="store_true", help="try all learning rates of either side")
    for option, chosen in zip(("--momentum", "--natural"), CHOSEN):
        rates = f"learning rates of {chosen.side} per minibatch and its epochs ({chosen.text})"
        parser.add_argument(option, type=partial(plan_of, chosen.side), default=chosen, metavar="A:B:N", help=rates)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, help="file for a picture (PNG, SVG)")
    parser.add_argument(ONE_THREAD, action="store_true", help="train with one thread instead of two")
    arguments = parser.parse_args(argv)
    train_scp = arguments.experiment / "lists" / "train.scp"
    if not train_scp.exists():
        print(f"time-to-loss: {train_scp}: missing; run argonaut recipe an4 --data DIR --out {arguments.experiment}")
        return 2
    lines = train_scp.read_text().splitlines()
    if not arguments.copies:
        lines = [line for line in lines if line.startswith("plain/")]
    with tempfile.TemporaryDirectory() as folder:
        scp = Path(folder) / "train.scp"
        scp.write_text("\n".join(lines[:: arguments.every]) + "\n")

        def make(plan: Plan) -> Training:
            return Training(plan, arguments.experiment, scp, arguments.seed)

        print(f"time-to-loss: {len(lines[:: arguments.every])} recordings, {threads()} threads")
        plans = [arguments.momentum, arguments.natural]
        plans, curves = try_all(make) if arguments.trials else (plans, train(plans, make))
    print("\n".join(compare(*curves)))
    if arguments.picture:
        draw(plans, curves, arguments.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
