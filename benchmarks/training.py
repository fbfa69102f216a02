"""What the training benchmarks share: both sides in one process, turn by turn, and their memory, each on its own.

A case says what is trained, on what, and how each side does it.  Both sides start from the same weights and must still
agree after a few updates, without dropout, else there is no figure.  PyTorch runs with its fastest optimiser loop (and
memory layout, where there is a choice), found out at the start.  With --one-thread each side has one thread, and its
CPU time counts: on a machine with other work to do, threads that wait for each other measure mostly that.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

THREADS = 2
ROUNDS = 9
SECONDS_A_TURN = 0.8
UPDATES_TO_AGREE, UPDATES_FOR_MEMORY = 5, 20
PASSES_OVER_VALUES = 6  # the activation reads and writes, its gradient reads two and writes one, that of the bias reads
PASSES_OVER_PARAMETERS = 5  # an update reads gradient, momentum and weight, and writes the latter two
LARGEST_DIFFERENCE = 0.02  # of what a parameter has moved: rounding takes some rectified units across their kink
ONE_THREAD = "--one-thread"
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
LOOPS = ("for each", "foreach", "fused")  # PyTorch's ways through the parameters

device = "cpu"  # of our networks; PyTorch's tensors are moved to the device of its parameters

Step = Callable[[], float]  # one update; returns the loss
Side = tuple[Step, Callable[[], list]]  # and the weights as they are now


@dataclass(frozen=True)
class Case:
    """One network and one size of minibatch.

    name: of the ratio; title: what is trained; shapes: of the parameters, in our order; operations: of the matrix
    products of one update; values: of activations in one update; data(): features (rows, N) and one-hot labels
    (classes, N); ours(weights, features, labels, dropout) and theirs(torch, weights, features, labels, dropout, way):
    one of each side, from the same weights.
    """

    name: str
    title: str
    frames: int
    shapes: Sequence[tuple[int, int]]
    operations: int
    values: int
    data: Callable[[], tuple[Any, Any]]
    ours: Callable[..., Side]
    theirs: Callable[..., Side]
    ways: Sequence[str] = LOOPS
    dropout: float = 0.0

    def weights(self) -> list:
        """The parameters at the start, float32: Gaussian, of deviation 1 / sqrt(columns)."""
        import numpy as np

        rng = np.random.default_rng(1)
        return [
            np.asfortranarray(rng.standard_normal(shape, dtype=np.float32) / np.float32(shape[1] ** 0.5))
            for shape in self.shapes
        ]

    @property
    def traffic(self) -> int:
        """Bytes that an update moves beside its products, at least."""
        parameters = sum(rows * cols for rows, cols in self.shapes)
        return 4 * (PASSES_OVER_VALUES * self.values + PASSES_OVER_PARAMETERS * parameters)


@dataclass(frozen=True)
class Limit:
    """What a minibatch takes at least: products at the rate of the machine's best product, then its memory traffic.

    product_rate: operations per second; memory_rate: bytes per second.
    """

    case: Case
    product_rate: float
    memory_rate: float

    @property
    def products(self) -> float:
        """Seconds of the products."""
        return self.case.operations / self.product_rate

    @property
    def memory(self) -> float:
        """Seconds of the memory traffic."""
        return self.case.traffic / self.memory_rate

    @property
    def seconds(self) -> float:
        """Of a minibatch."""
        return self.products + self.memory


@dataclass(frozen=True)
class Figures:
    """Of either side the median seconds of a minibatch, and those of the best; ratio: our frames per second over
    PyTorch's, as they are told.
    """

    ours: float
    theirs: float
    our_best: float
    their_best: float
    ratio: float


def main(
    module: str, cases: Sequence[Case], compare: Callable[[dict[str, Figures]], None] = lambda figures: None
) -> int:
    """Print the figures and `RATIO name value` of each case; libraries read their threads at the start: a new process.

    compare: prints at the end what all figures, by the names of the cases, say together.  With
    `--memory INDEX ours|theirs` on the command line, print the peak of one side instead, in MiB.
    """
    if any(os.environ.get(name) != str(threads()) for name in VARIABLES):
        return subprocess.run([sys.executable, "-m", module, *sys.argv[1:]], env=environment()).returncode
    if sys.argv[1:2] == ["--memory"]:
        print(peak_memory(cases[int(sys.argv[2])], sys.argv[3]))
        return 0
    name = module.rpartition(".")[2].replace("_", "-")
    try:
        import torch
    except ImportError:
        print(f"{name}: PyTorch is not installed; pip install '.[bench]' in the project's directory", file=sys.stderr)
        return 2
    torch.set_num_threads(threads())
    from acoustic.runtime.blas import product_library

    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    how = f"{THREADS} threads" if threads() > 1 else "CPU time of one thread"
    print(f"{name}: {how}; ours with {product_library()}, PyTorch {torch.__version__}; load before the start {load}")
    figures = {}
    for index, case in enumerate(cases):
        print(f"  {case.title}, minibatch {case.frames}")
        figures[case.name] = measure(torch, case)
        report_memory(module, index)
        ratio = figures[case.name].ratio
        print(f"RATIO {case.name}{'' if threads() > 1 else '-one-thread'} {ratio:.2f}", flush=True)
    compare(figures)
    return 0


def threads() -> int:
    """Of each side."""
    return 1 if ONE_THREAD in sys.argv else THREADS


def environment() -> dict[str, str]:
    """The environment of a process whose libraries use so many."""
    return os.environ | dict.fromkeys(VARIABLES, str(threads()))


def measure(torch: Any, case: Case) -> Figures:
    """Both sides' medians over the rounds, that of the ratios, and the best minibatch of all rounds."""
    import numpy as np

    features, labels = case.data()
    check_agreement(torch, case, features, labels)
    ours, _ = case.ours(case.weights(), features, labels, case.dropout)
    candidates = {way: case.theirs(torch, case.weights(), features, labels, case.dropout, way)[0] for way in case.ways}
    way = min(candidates, key=lambda one: turn(candidates[one])[0])
    rounds = []
    for _ in range(ROUNDS):
        rounds.append((turn(ours), turn(candidates[way]), matmul_rate(torch, case.frames)))
    limit = Limit(case, max(rate for *_, rate in rounds), memory_rate(torch, case.traffic))
    report(case, way, rounds, limit)
    ours, theirs = (float(np.median([one[side][1] for one in rounds])) for side in (0, 1))
    best = (min(one[side][0] for one in rounds) for side in (0, 1))
    return Figures(ours, theirs, *best, float(np.median([theirs[1] / ours[1] for ours, theirs, _ in rounds])))


def check_agreement(torch: Any, case: Case, features: Any, labels: Any) -> None:
    """End the program unless both sides do the same."""
    import numpy as np

    ours, our_weights = case.ours(case.weights(), features, labels, 0.0)
    theirs, their_weights = case.theirs(torch, case.weights(), features, labels, 0.0, case.ways[0])
    for _ in range(UPDATES_TO_AGREE):
        ours()
        theirs()
    pairs = list(zip(our_weights(), their_weights(), case.weights(), strict=True))
    difference = max(np.linalg.norm(a - b) / np.linalg.norm(a - start) for a, b, start in pairs)
    if not difference <= LARGEST_DIFFERENCE:
        raise SystemExit(
            f"{case.name}: after {UPDATES_TO_AGREE} updates a parameter differs by {difference:.2g} of its way; "
            f"expected at most {LARGEST_DIFFERENCE:g}"
        )


def turn(step: Step) -> tuple[float, float]:
    """(best, median) seconds of a minibatch over one turn, the first few left out while threads wake."""
    times = []
    clock = time.perf_counter if threads() > 1 else time.thread_time
    end = time.perf_counter() + SECONDS_A_TURN
    while time.perf_counter() < end or len(times) < 8:
        start = clock()
        step()
        times.append(clock() - start)
    time.sleep(0.1)  # the other side's idle threads look out for work for a while, and would be in the way
    times = sorted(times[3:])
    return times[0], times[len(times) // 2]


def report(case: Case, way: str, rounds: list, limit: Limit) -> None:
    import numpy as np

    frames, operations = case.frames, case.operations
    print(
        f"    {'limit':32} {frames / limit.seconds:7.0f} frames/s: {1e3 * limit.products:.2f} ms of products at "
        f"{limit.product_rate / 1e9:.0f} GFLOPS, {1e3 * limit.memory:.2f} ms of memory at "
        f"{limit.memory_rate / 1e9:.0f} GB/s"
    )
    for name, side in (("Argonaut", 0), (f"PyTorch ({way})", 1)):
        median = np.median([one[side][1] for one in rounds])
        best = min(one[side][0] for one in rounds)
        print(
            f"    {name:32} {frames / median:7.0f} frames/s, best {frames / best:7.0f}; "
            f"{operations / median / 1e9:4.0f} GFLOPS, {100 * limit.seconds / median:3.0f} % of the limit"
        )
    best = min(one[1][0] for one in rounds) / min(one[0][0] for one in rounds)
    ratios = sorted(theirs[1] / ours[1] for ours, theirs, _ in rounds)
    print(f"    ratio per round {ratios[0]:.2f} to {ratios[-1]:.2f}; of the best minibatches {best:.2f}")


def matmul_rate(torch: Any, frames: int) -> float:
    """Operations per second of the better of numpy's and PyTorch's matrix product, 512x792 by 792xN and 1024 cubed."""
    import numpy as np

    best = 0.0
    for m, k, n in ((512, 792, frames), (1024, 1024, 1024)):
        a, b, out = np.ones((m, k), np.float32), np.ones((k, n), np.float32), np.empty((m, n), np.float32)
        tensors = [torch.from_numpy(matrix) for matrix in (a, b, out)]
        for multiply in (partial(np.dot, a, b, out=out), partial(torch.mm, *tensors[:2], out=tensors[2])):
            for _ in range(12):
                start = time.perf_counter()
                multiply()
                best = max(best, 2 * m * k * n / (time.perf_counter() - start))
            time.sleep(0.05)
    return best


def memory_rate(torch: Any, traffic: int) -> float:
    """Bytes per second of sums of two vectors into a third that are as large, together, as what a case moves."""
    vectors = [torch.ones(max(1, traffic // (3 * 4))) for _ in range(3)]
    best = 0.0
    for _ in range(20):
        start = time.perf_counter()
        torch.add(vectors[0], vectors[1], out=vectors[2])
        best = max(best, traffic / (time.perf_counter() - start))
    return best


# ---- memory


def report_memory(module: str, index: int) -> None:
    """Print both sides' peak memory; each in a process of its own, with its libraries."""
    peaks = {}
    for side in ("ours", "theirs"):
        command = [sys.executable, "-m", module, "--memory", str(index), side, *sys.argv[1:]]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment(), check=True)
        peaks[side] = float(done.stdout)
    print(f"    peak memory: Argonaut {peaks['ours']:.0f} MiB, PyTorch {peaks['theirs']:.0f} MiB, libraries included")


def peak_memory(case: Case, side: str) -> float:
    """The largest resident size of this process, in MiB, after some updates of one side."""
    features, labels = case.data()
    if side == "ours":
        step, _ = case.ours(case.weights(), features, labels, case.dropout)
    else:
        import torch

        torch.set_num_threads(threads())
        step, _ = case.theirs(torch, case.weights(), features, labels, case.dropout, case.ways[0])
    for _ in range(UPDATES_FOR_MEMORY):
        step()
    return largest_resident_size()


def largest_resident_size() -> float:
    """Of this process so far, in MiB.  Linux's getrusage goes on from the process that started this one."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


# ---- the sides


def make_data(rows: int, classes: int, frames: int) -> tuple[Any, Any]:
    """Features (rows, N) and one-hot labels (classes, N), float32, Fortran order."""
    import numpy as np

    rng = np.random.default_rng(0)
    features = np.asfortranarray(rng.standard_normal((rows, frames), dtype=np.float32))
    labels = np.zeros((classes, frames), dtype=np.float32, order="F")
    labels[rng.integers(0, classes, frames), np.arange(frames)] = 1
    return features, labels


def our_side(
    network: Any,
    options: Any,
    weights: list,
    features: Any,
    labels: Any,
    dropout: float,
    layout: Any = None,
    parameters: Sequence[str] | None = None,
) -> Side:
    """Training of a network of ours, whose criterion is its first.

    options: TrainingOptions with one learning rate per frame and one momentum per minibatch; weights: of the parameters
    of these names (default: of all, in their order); layout: SequenceLayout of the columns, for recurrent networks.
    """
    from acoustic.engine.engine import Engine
    from acoustic.training.update import Updater

    nodes = network.parameters() if parameters is None else [network[name] for name in parameters]
    for node, weight in zip(nodes, weights, strict=True):
        network.set_value(node, weight.copy(order="F"))
    criterion = network.criteria[0]
    engine = Engine(network, [criterion])
    update = Updater(network, options)
    values = options.epoch(0)
    frames = features.shape[1]
    momentum = values.momentum_of(frames)
    matrices = {"features": network.backend.asarray(features), "labels": network.backend.asarray(labels)}
    count = 0

    def step() -> float:
        nonlocal count
        count += 1
        engine.forward(matrices, training=True, dropout_rate=dropout, seed=(0, 0, count), layout=layout)
        update.begin(values.learning_rate, momentum, frames)
        loss = float(engine.value(criterion)[0, 0])
        engine.backward(criterion, on_gradient=update)
        return loss

    return step, lambda: [network.backend.to_host(node.value).copy(order="F") for node in nodes]


def their_side(torch: Any, network: Any, optimiser: Any, x: Any, labels: Any, current: Callable[[], list]) -> Side:
    """Training of a PyTorch module on x with cross-entropy summed over the frames; its labels are class numbers."""
    criterion = torch.nn.CrossEntropyLoss(reduction="sum")
    place = next(network.parameters()).device
    x, y = x.to(place), torch.from_numpy(labels.argmax(axis=0)).to(place)
    network.train()

    def step() -> float:
        optimiser.zero_grad()
        loss = criterion(network(x), y)
        loss.backward()
        optimiser.step()
        return loss.item()

    return step, current


def loop_settings(way: str) -> dict[str, bool]:
    """Arguments of a PyTorch optimiser that choose one of LOOPS."""
    return {"foreach": {"foreach": True}, "fused": {"fused": True}}.get(way, {"foreach": False})


def momentum_optimiser(torch: Any, parameters: Iterable[Any], rate: float, momentum: float, way: str) -> Any:
    """Stochastic gradient descent with momentum of unit gain, its buffers at 0."""
    settings = {"lr": rate, "momentum": momentum, "dampening": momentum, **loop_settings(way)}
    parameters = list(parameters)
    optimiser = torch.optim.SGD(parameters, **settings)
    for parameter in parameters:  # else its first update takes the whole gradient
        optimiser.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    return optimiser


def torch_layers(torch: Any, weights: list, activation: Callable[[], Any], dropout: float) -> Any:
    """Linear layers W0, B0, W1, ... with an activation, and dropout unless 0, after all but the last."""
    layers = []
    for weight, bias in zip(weights[::2], weights[1::2]):
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weight))
            linear.bias.copy_(torch.from_numpy(bias[:, 0]))
        layers += [linear, activation(), *([torch.nn.Dropout(dropout)] if dropout else [])]
    return torch.nn.Sequential(*layers[: -2 if dropout else -1])


def current_values(network: Any) -> Callable[[], list]:
    """The parameters of a PyTorch module as ours are: matrices, biases as columns."""

    def current() -> list:
        values = [parameter.detach().cpu().numpy() for parameter in network.parameters()]
        return [value if value.ndim == 2 else value[:, None] for value in values]

    return current
