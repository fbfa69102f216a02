"""Time of a minibatch by online natural-gradient descent against plain gradient descent, side by side, two threads.

    python -m benchmarks.ngsgd [--one-thread]

A 792-512x3-183 sigmoid network and one of five p-norm layers, minibatches of 512 frames, the loss read after every
minibatch.  Plain descent is that of gradUpdateType=None without momentum; beside it stand momentum 0.9, and plain
descent with the natural gradient's limit of the change.  A turn of four minibatches has one update of the Fisher
matrix's factors, as in a long training.  The ratio is plain descent's time over the natural gradient's (Povey, Zhang
and Khudanpur, 2015, section 6.2: 88 s to 93 s, 0.95).  Its limit is the same ratio of the operations of the matrix
products; `RATIO ngsgd-of-limit` is the share of the limit that is reached.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks.training import VARIABLES, environment, make_data, threads

FRAMES, RATE = 512, 1e-5
TURN = 4  # minibatches from one update of the Fisher matrix to the next
ROUNDS, WARM = 15, 16
NETWORKS = {
    "dnn": ("792-512x3-183 sigmoid", (792, 512, 512, 512, 183), {"layer_types": ("Sigmoid",)}),
    "pnorm": (
        "792-5x p-norm of 2000 to 200-183",
        (792, 200, 200, 200, 200, 200, 183),
        {"layer_types": ("PNorm",), "group_size": 10},
    ),
}


def main() -> int:
    if any(os.environ.get(name) != str(threads()) for name in VARIABLES):
        return subprocess.run([sys.executable, "-m", "benchmarks.ngsgd", *sys.argv[1:]], env=environment()).returncode
    from acoustic.runtime.blas import product_library

    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    how = f"{threads()} threads" if threads() > 1 else "CPU time of one thread"
    print(f"ngsgd: {how}; products by {product_library()}; load before the start {load}")
    for name, (title, sizes, settings) in NETWORKS.items():
        print(f"  {title}, minibatch {FRAMES}")
        suffix = name if threads() > 1 else f"{name}-one-thread"
        ratio, limit = measure(sizes, settings), limit_of(layers_of(sizes, settings))
        print(f"RATIO ngsgd-vs-sgd-{suffix} {ratio:.2f}")
        print(f"RATIO ngsgd-of-limit-{suffix} {ratio / limit:.2f} (limit {limit:.3f})", flush=True)
    return 0


def layers_of(sizes: tuple[int, ...], settings: dict[str, Any]) -> list[tuple[int, int]]:
    """Inputs and outputs of each product; a group of a p-norm layer has several outputs of the product."""
    group = settings.get("group_size", 1)
    outputs = [*(size * group for size in sizes[1:-1]), sizes[-1]]
    return list(zip(sizes, outputs))


def limit_of(layers: list[tuple[int, int]], frames: int = FRAMES) -> float:
    """Operations of plain descent's products over those of the natural gradient with its default ranks.

    Plain descent: two products per weight and frame for the output and the weights' gradient, and one for the inputs'
    gradient but in the first layer.  Natural gradient, for each side of a layer: H = W X and X - W' H in each
    minibatch; J = H X' and two products of (rank, rank) and (rank, dim) in one of TURN minibatches.
    """
    from acoustic.training.rules import NaturalGradient

    rule, plain, more = NaturalGradient(), 0.0, 0.0
    for number, (inputs, outputs) in enumerate(layers):
        plain += (6 if number else 4) * inputs * outputs * frames
        for rank, dim in ((rule.rank_in, inputs + 1), (rule.rank_out, outputs)):
            rank = min(rank, dim - 1)
            more += 4 * rank * dim * frames + (2 * rank * dim * frames + 4 * rank * rank * dim) / TURN
    return plain / (plain + more)


def measure(sizes: tuple[int, ...], settings: dict[str, Any]) -> float:
    """The median of the rounds' ratios; prints all sides."""
    from acoustic.training.rules import Momentum, NaturalGradient

    sides = {
        "plain": trainer(sizes, settings, Momentum(), 0.0),
        "momentum 0.9": trainer(sizes, settings, Momentum(), 0.9),
        "plain, change limited": trainer(sizes, settings, NaturalGradient(method="plain"), 0.0),
        "natural gradient": trainer(sizes, settings, NaturalGradient(), 0.0),
    }
    for step in sides.values():
        for _ in range(WARM):
            step()
    clock = time.perf_counter if threads() > 1 else time.thread_time
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, step in sides.items():
            time.sleep(0.05)  # the side before has threads that look out for work for a while
            step()
            start = clock()
            for _ in range(TURN):
                step()
            times[name].append((clock() - start) / TURN)
    pairs = {name: [base / own for base, own in zip(times["plain"], found)] for name, found in times.items()}
    for name, found in times.items():
        print(
            f"    {name:24} {1e3 * min(found):7.2f} ms at best, {1e3 * median(found):7.2f} median; "
            f"plain over it {median(pairs[name]):.3f}, round by round {min(pairs[name]):.2f} to {max(pairs[name]):.2f}"
        )
    return median(pairs["natural gradient"])


def trainer(sizes: tuple[int, ...], settings: dict[str, Any], rule: Any, momentum: float) -> Callable[[], float]:
    """A network of its own; each call learns from the same minibatch once more."""
    from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
    from acoustic.engine.engine import Engine
    from acoustic.training.natural_gradient import make_updater
    from acoustic.training.options import TrainingOptions

    features, labels = make_data(sizes[0], sizes[-1], FRAMES)
    network = build_simple_network(SimpleNetworkOptions(layer_sizes=sizes, **settings))
    options = TrainingOptions(max_epochs=1, minibatch_size=FRAMES, learning_rates_per_sample=RATE, rule=rule)
    updater, criterion = make_updater(network, options), network.criteria[0]
    engine = Engine(network, [criterion])
    matrices = {"features": features, "labels": labels}

    def step() -> float:
        engine.forward(matrices, training=True)
        loss = float(engine.value(criterion)[0, 0])
        updater.begin(RATE, momentum, FRAMES)
        engine.backward(criterion, on_gradient=updater)
        return loss

    return step


if __name__ == "__main__":
    sys.exit(main())
