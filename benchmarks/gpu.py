"""Training on a GPU against PyTorch there: the tests marked `gpu`, then DNN, ReLU, CNN and LSTM networks and LF-MMI.

    python -m benchmarks.gpu [--no-tests] [--cases NAME,NAME]

needs a CUDA device, the extras `gpu` and `test`, and PyTorch with CUDA.  Networks, and the check that both sides agree,
are those of dnn_train, dnn_relu_train, cnn_train and lstm_train, the graphs those of lattice_free.  Data and parameters
stay on the device; the loss is read after every minibatch.  CUDA events measure turns of both sides, one after the
other, after a warm-up.  Products are float32 on both sides, without TF32.  Each case ends with `RATIO gpu-NAME value`:
PyTorch's time over ours.
"""

import argparse
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from benchmarks import cnn_train, dnn_relu_train, dnn_train, lattice_free, lstm_train, training

WARM, CALLS, ROUNDS = 10, 20, 9
LATTICE_FREE = "lfmmi-train"
CASES = [*dnn_train.CASES, *dnn_relu_train.CASES, *cnn_train.CASES, *lstm_train.CASES]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tests and print the ratios."""
    names = [*(case.name for case in CASES), LATTICE_FREE]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--no-tests", action="store_true", help="do not run the tests")
    parser.add_argument("--cases", default=",".join(names), help="names, separated by commas")
    arguments = parser.parse_args(argv)
    chosen = arguments.cases.split(",")
    if unknown := [name for name in chosen if name not in names]:
        print(f"gpu: --cases {','.join(unknown)}; expected some of {', '.join(names)}", file=sys.stderr)
        return 2
    fault = missing()
    if fault:
        print(f"gpu: {fault}", file=sys.stderr)
        return 2
    status = 0 if arguments.no_tests else run_tests()
    import torch

    prepare(torch)
    for case in CASES:
        if case.name in chosen:
            print(f"  {case.title}, minibatch {case.frames}")
            report(case.name, *sides_of(torch, case))
    if LATTICE_FREE in chosen:
        report(LATTICE_FREE, *lattice_free_sides(torch))
    return status


def missing() -> str:
    """Return what is missing for the comparison, "" for nothing."""
    try:
        import cupy
        import torch
    except ImportError as fault:
        return f"{fault}; expected cupy, from the extra gpu, and PyTorch with CUDA"
    if not cupy.is_available() or not torch.cuda.is_available():
        return "no CUDA device; expected one that both cupy and PyTorch can use"
    return ""


def run_tests() -> int:
    """Run the tests of the GPU; return their exit status."""
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/acoustic"], check=False).returncode


def prepare(torch: Any) -> None:
    """Make both sides compute on the first GPU, in float32."""
    import cupy

    training.device = "gpu"
    torch.set_default_device("cuda")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"gpu: {name}; cupy {cupy.__version__}, PyTorch {torch.__version__}")


Sides = tuple[Callable[[], Any], dict[str, Callable[[], Any]]]


def sides_of(torch: Any, case: training.Case) -> Sides:
    """Our training step and PyTorch's in each of its ways, after a check that both do the same."""
    features, labels = case.data()
    training.check_agreement(torch, case, features, labels)
    ours = case.ours(case.weights(), features, labels, case.dropout)[0]
    return ours, {way: case.theirs(torch, case.weights(), features, labels, case.dropout, way)[0] for way in case.ways}


def lattice_free_sides(torch: Any) -> Sides:
    """The criterion and its gradient, of outputs on the device; ours computes in host memory."""
    import numpy as np

    warnings.filterwarnings("ignore", ".*[Ss]parse")
    placed = lattice_free.chunks()
    graph = placed[0].supervision.denominator
    shape = graph.num_outputs, lattice_free.SEQUENCES * lattice_free.STEPS
    y = np.asfortranarray(2 * np.random.default_rng(1).standard_normal(shape, dtype=np.float32))
    ours, gradient = lattice_free_side(placed, y)
    theirs = {
        way: lattice_free.TheirCriterion(torch, placed, y, sparse=way == "sparse").to(torch.get_default_device().type)
        for way in ("arcs", "sparse")
    }
    value = ours()
    for way, side in theirs.items():
        other, found = side()
        difference = max(abs(value - other) / shape[1], float(np.abs(found.sum(axis=1) - gradient()).max()) / shape[1])
        if not difference <= lattice_free.MOST_DIFFERENCE:
            raise SystemExit(f"{way}: differs by {difference:.2g}; expected at most {lattice_free.MOST_DIFFERENCE:g}")
    print(f"  {graph.num_states} states, {len(graph.output)} arcs; {lattice_free.SEQUENCES} chunks")
    return ours, dict(theirs)


def lattice_free_side(placed: list[Any], y: Any) -> tuple[Callable[[], float], Callable[[], Any]]:
    """The node LFMMI on y plus a column of parameters, without regularisation; the gradient of this column."""
    from acoustic.engine.engine import Engine
    from acoustic.network.network import Network
    from readers.minibatches.sequence_layout import SequenceLayout

    network = Network(device=training.device)
    network.add("Input", "y", rows=len(y))
    network.add("Parameter", "B", rows=len(y), init="fixedValue", value=0)
    network.add("LFMMI", "J", network.add("Plus", "shifted", "y", "B"), leaky=lattice_free.LEAKY, l2=0.0, penalty=0.0)
    layout = SequenceLayout.of_lengths([lattice_free.STEPS] * lattice_free.SEQUENCES)
    layout = replace(layout, supervisions=tuple(placed))
    engine, matrices = Engine(network, ["J"]), {"y": network.backend.asarray(y)}

    def compute() -> float:
        engine.forward(matrices, training=True, criterion="J", layout=layout)
        engine.backward("J")
        return float(engine.value("J")[0, 0])

    return compute, lambda: network.backend.to_host(engine.gradient("B"))[:, 0]


def report(name: str, ours: Callable[[], Any], theirs: dict[str, Callable[[], Any]]) -> None:
    """Print the times of both sides and their ratio."""
    way = min(theirs, key=lambda one: their_turn(theirs[one]))
    pairs = [(our_turn(ours), their_turn(theirs[way])) for _ in range(ROUNDS)]
    for title, times in (("Argonaut", [one for one, _ in pairs]), (f"PyTorch ({way})", [one for _, one in pairs])):
        print(f"    {title:32} {median(times):8.3f} ms, best {min(times):8.3f}")
    ratios = sorted(other / own for own, other in pairs)
    print(f"    ratio per round {ratios[0]:.2f} to {ratios[-1]:.2f}")
    print(f"RATIO gpu-{name} {median(ratios):.2f}", flush=True)


def our_turn(step: Callable[[], Any]) -> float:
    """Milliseconds of a call by events in cupy's stream."""
    from cupy import cuda

    return turn(step, cuda.Event, lambda event: event.synchronize(), cuda.get_elapsed_time)


def their_turn(step: Callable[[], Any]) -> float:
    """Milliseconds of a call by events in PyTorch's stream."""
    from torch import cuda

    return turn(
        step, lambda: cuda.Event(enable_timing=True), lambda event: event.synchronize(), lambda a, b: a.elapsed_time(b)
    )


def turn(step: Callable[[], Any], make: Callable[[], Any], wait: Callable[[Any], None], elapsed: Any) -> float:
    """Milliseconds of a call, after some to warm up."""
    for _ in range(WARM):
        step()
    first, last = make(), make()
    first.record()
    for _ in range(CALLS):
        step()
    last.record()
    wait(last)
    return elapsed(first, last) / CALLS


if __name__ == "__main__":
    sys.exit(main())
