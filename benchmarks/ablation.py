"""What each optimisation of the engine gives: a minibatch of training without it and with it, in turn, two threads.

    python -m benchmarks.ablation [--one-thread] [--markdown]

For every switch of EngineOptions, and for all of them off: time of a minibatch with the switch off over that with all
of them on, the median of the rounds.  Above 1 the switch helps; `-` stands where it does not act.  The networks are
those of dnn_train, dnn_relu_train, cnn_train and lstm_train, and the natural gradient of ngsgd.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.training import VARIABLES, Step, environment, threads

ROUNDS, WARM = 9, 6
SECONDS_A_TURN = 0.25
ALL = "noTables noCompiledLoops noWeightPanels noFusion noBufferSharing plain".split()
FEED_FORWARD = ("noTables", "noFusion", "noBufferSharing", "plain")


@dataclass(frozen=True)
class Network:
    """make: a step of training, with the engine that holds when it is called; acts: the switches that act on it."""

    title: str
    make: Callable[[], Step]
    acts: tuple[str, ...] = tuple(ALL)


def networks() -> list[Network]:
    from acoustic.training.rules import NaturalGradient
    from benchmarks import cnn_train, dnn_relu_train, dnn_train, lstm_train, ngsgd

    small, large = dnn_train.CASES
    found = [
        Network("DNN, 256 frames", of_case(small), FEED_FORWARD),
        Network("DNN, 1024 frames", of_case(large), FEED_FORWARD),
        Network("ReLU with dropout", of_case(dnn_relu_train.CASES[0]), FEED_FORWARD),
        Network("CNN", of_case(cnn_train.CASES[0]), FEED_FORWARD),
    ]
    for (cells, layers), case in zip(lstm_train.SIZES, lstm_train.CASES, strict=True):
        found.append(Network(f"LSTM {cells}, {layers} layer{'s' * (layers > 1)}", of_case(case)))
    few = partial(lstm_train.our_step, 512, 1, 2)
    found.append(Network("LSTM 512, 1 layer, 2 sequences", few))
    for name, (_, sizes, settings) in ngsgd.NETWORKS.items():
        make = partial(ngsgd.trainer, sizes, settings, NaturalGradient(), 0.0)
        found.append(Network(f"natural gradient, {name}", make, FEED_FORWARD))
    return found


def of_case(case) -> Callable[[], Step]:
    def make() -> Step:
        features, labels = case.data()
        return case.ours(case.weights(), features, labels, case.dropout)[0]

    return make


def main() -> int:
    """Print the table; libraries read their threads at the start: a new process."""
    if any(os.environ.get(name) != str(threads()) for name in VARIABLES):
        command = [sys.executable, "-m", "benchmarks.ablation", *sys.argv[1:]]
        return subprocess.run(command, env=environment()).returncode
    from acoustic.runtime.blas import product_library

    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    how = f"{threads()} threads" if threads() > 1 else "CPU time of one thread"
    print(f"ablation: {how}; products by {product_library()}; load before the start {load}")
    rows = [["", "ms", *(name.removeprefix("no") for name in ALL)]]
    for network in networks():
        base, ratios = measure(network)
        rows.append([network.title, f"{1e3 * base:.1f}", *(f"{ratios[k]:.2f}" if k in ratios else "-" for k in ALL)])
        print_row(rows[-1], rows[0] if len(rows) == 2 else None)
    return 0


def print_row(row: list[str], head: list[str] | None) -> None:
    if "--markdown" in sys.argv:
        if head:
            print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
        print("| " + " | ".join(row) + " |", flush=True)
        return
    for one in (head, row):
        if one:
            print(f"{one[0]:32}" + "".join(f"{cell:>15}" for cell in one[1:]), flush=True)


def measure(network: Network) -> tuple[float, dict[str, float]]:
    """Seconds of a minibatch with everything on, and by switch how many times as long it takes without it."""
    import numpy as np

    from acoustic.runtime.engine_options import engines_with

    steps = {}
    for name in ("full", *network.acts):
        with engines_with(name):
            steps[name] = network.make()
            for _ in range(WARM):
                steps[name]()
    rounds: list[dict[str, float]] = []
    for number in range(ROUNDS):
        order = list(steps) if number % 2 else list(steps)[::-1]
        rounds.append({name: turn(steps[name]) for name in order})
    base = float(np.median([one["full"] for one in rounds]))
    return base, {name: float(np.median([one[name] / one["full"] for one in rounds])) for name in network.acts}


def turn(step: Step) -> float:
    """Median seconds of a minibatch over one turn."""
    clock = time.perf_counter if threads() > 1 else time.thread_time
    end, times = time.perf_counter() + SECONDS_A_TURN, []
    while time.perf_counter() < end or len(times) < 8:
        start = clock()
        step()
        times.append(clock() - start)
    time.sleep(0.02)  # idle threads look out for work for a while, and would be in the way of the next side
    times = sorted(times[2:])
    return times[len(times) // 2]


if __name__ == "__main__":
    sys.exit(main())
