"""Training and scoring on a GPU against PyTorch there, after the tests marked `gpu`: one run, one report.

    python -m benchmarks.gpu [--no-tests] [--cases NAME,NAME] [--report FILE]

needs a CUDA device, the extras `gpu` or `gpu13` and `dev`, and PyTorch with CUDA.  Networks, and the check that both
sides agree, are those of dnn_train, dnn_relu_train, cnn_train and lstm_train, the graphs those of lattice_free;
dnn-score computes the outputs of dnn_train's network.  Data and parameters stay on the device; the loss is read after
every minibatch.  CUDA events measure turns of both sides, one after the other, after a warm-up.
Products are float32 on both sides, without TF32.  Each case ends with `RATIO gpu-NAME value`: PyTorch's time over ours.
The case with the lowest ratio is profiled: kernels and launches of a step on both sides, and the share of the time in
which the device computes.  The report, by default build/gpu.txt, holds all that is printed.  Layers of 8-bit integers
are computed on the CPU only.  Without a device, gpu_launches counts launches.
"""

import argparse
import contextlib
import subprocess
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, TextIO

from benchmarks import cnn_train, dnn_relu_train, dnn_train, lattice_free, lstm_train, training

WARM, CALLS, ROUNDS = 10, 20, 9
MOST_OUTPUT_DIFFERENCE = 1e-3
PROFILED, SHOWN = 10, 12  # calls, and kernels that take most of their time
LATTICE_FREE, SCORING = "lfmmi-train", "dnn-score"
Sides = tuple[Callable[[], Any], dict[str, Callable[[], Any]]]
CASES = [*dnn_train.CASES, *dnn_relu_train.CASES, *cnn_train.CASES, *lstm_train.CASES]


class Report:
    """A text stream that writes to two."""

    def __init__(self, *streams: TextIO) -> None:
        self.streams = streams

    def write(self, text: str) -> int:
        return min(stream.write(text) for stream in self.streams)

    def flush(self) -> None:
        for stream in self.streams:
            stream.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tests and the cases, and write the report."""
    names = [*(case.name for case in CASES), LATTICE_FREE, SCORING]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--no-tests", action="store_true", help="do not run the tests")
    parser.add_argument("--cases", default=",".join(names), help="names, separated by commas")
    parser.add_argument("--report", type=Path, default=Path("build/gpu.txt"), help="file that holds what is printed")
    arguments = parser.parse_args(argv)
    chosen = arguments.cases.split(",")
    if unknown := [name for name in chosen if name not in names]:
        print(f"gpu: --cases {','.join(unknown)}; expected some of {', '.join(names)}", file=sys.stderr)
        return 2
    fault = missing()
    if fault:
        print(f"gpu: {fault}", file=sys.stderr)
        return 2
    arguments.report.parent.mkdir(parents=True, exist_ok=True)
    with (
        arguments.report.open("w", encoding="utf-8") as file,
        contextlib.redirect_stdout(Report(sys.stdout, file)),
    ):
        return run(chosen, not arguments.no_tests)


def run(chosen: Sequence[str], with_tests: bool) -> int:
    """Print everything; return 0 if the tests passed and all cases ran."""
    status = run_tests() if with_tests else 0
    import torch

    prepare(torch)
    ratios: dict[str, float] = {}
    for name in chosen:
        try:
            ratios[name] = report(name, *named_sides(torch, name))
        except (Exception, SystemExit):  # a device is rare: the other cases still tell something
            print(f"FAILED gpu-{name}\n{traceback.format_exc()}", flush=True)
            status = 1
    if not ratios:
        return status
    slowest = min(ratios, key=lambda name: ratios[name])
    print(f"  profile of {slowest}, ratio {ratios[slowest]:.2f}")
    ours, theirs = named_sides(torch, slowest)
    profile(torch, "Argonaut", ours)
    for way, side in theirs.items():
        profile(torch, f"PyTorch ({way})", side)
    return status


def named_sides(torch: Any, name: str) -> Sides:
    """Both sides of a case."""
    if name == LATTICE_FREE:
        return lattice_free_sides(torch)
    if name == SCORING:
        return scoring_sides(torch)
    return sides_of(torch, next(case for case in CASES if case.name == name))


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
    """Run the tests of the GPU and print their output; return their exit status."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/acoustic"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    print(done.stdout)
    return done.returncode


def prepare(torch: Any) -> None:
    """Make both sides compute on the first GPU, in float32."""
    import cupy

    training.device = "gpu"
    torch.set_default_device("cuda")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"gpu: {name}; cupy {cupy.__version__}, PyTorch {torch.__version__}")


def sides_of(torch: Any, case: training.Case) -> Sides:
    """Our training step and PyTorch's in each of its ways, after a check that both do the same."""
    print(f"  {case.title}, minibatch {case.frames}")
    features, labels = case.data()
    training.check_agreement(torch, case, features, labels)
    ours = case.ours(case.weights(), features, labels, case.dropout)[0]
    return ours, {way: case.theirs(torch, case.weights(), features, labels, case.dropout, way)[0] for way in case.ways}


def scoring_sides(torch: Any) -> Sides:
    """The outputs of a network for a minibatch, which stay on the device, after a check that both sides agree."""
    import numpy as np

    case = dnn_train.CASES[-1]
    weights, (features, _) = case.weights(), case.data()
    print(f"  outputs of {case.title}, {case.frames} frames")
    ours, outputs = scoring_side(weights, features)
    network = training.torch_layers(torch, weights, torch.nn.Sigmoid, 0.0).to(torch.get_default_device())
    x = torch.from_numpy(features.T.copy()).to(torch.get_default_device())

    def theirs() -> Any:
        with torch.inference_mode():
            return network(x)

    ours()
    difference = float(np.abs(outputs() - theirs().cpu().numpy().T).max())
    if not difference <= MOST_OUTPUT_DIFFERENCE:
        raise SystemExit(f"{SCORING}: differs by {difference:.2g}; expected at most {MOST_OUTPUT_DIFFERENCE:g}")
    return ours, {"inference mode": theirs}


def scoring_side(weights: list, features: Any) -> tuple[Callable[[], None], Callable[[], Any]]:
    """What computes the outputs of a network of sigmoid layers, and what returns them."""
    from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
    from acoustic.engine.engine import Engine

    sizes = (weights[0].shape[1], *(len(weight) for weight in weights[::2]))
    network = build_simple_network(
        SimpleNetworkOptions(layer_sizes=sizes, layer_types=("Sigmoid",)), device=training.device
    )
    for node, weight in zip(network.parameters(), weights, strict=True):
        network.set_value(node, weight)
    engine, matrices = Engine(network, ["HLast"]), {"features": network.backend.asarray(features)}
    return lambda: engine.forward(matrices), lambda: network.backend.to_host(engine.value("HLast"))


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


def report(name: str, ours: Callable[[], Any], theirs: dict[str, Callable[[], Any]]) -> float:
    """Print the times of both sides and their ratio; return this."""
    way = min(theirs, key=lambda one: their_turn(theirs[one]))
    pairs = [(our_turn(ours), their_turn(theirs[way])) for _ in range(ROUNDS)]
    for title, times in (("Argonaut", [one for one, _ in pairs]), (f"PyTorch ({way})", [one for _, one in pairs])):
        print(f"    {title:32} {median(times):8.3f} ms, best {min(times):8.3f}")
    ratios = sorted(other / own for own, other in pairs)
    print(f"    ratio per round {ratios[0]:.2f} to {ratios[-1]:.2f}")
    print(f"RATIO gpu-{name} {median(ratios):.2f}", flush=True)
    return median(ratios)


def profile(torch: Any, title: str, step: Callable[[], Any]) -> None:
    """Print the kernels of a step; PyTorch's profiler sees those of all libraries in the process."""
    from torch.profiler import ProfilerActivity

    for _ in range(WARM):
        step()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(PROFILED):
            step()
        torch.cuda.synchronize()
        end.record()
        end.synchronize()
    events = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    print_profile(title, [(event.name, event.time_range.elapsed_us()) for event in events], begin.elapsed_time(end))


def print_profile(title: str, kernels: Sequence[tuple[str, float]], milliseconds: float) -> None:
    """Print the kernels that take most of the time of PROFILED steps; kernels: names and microseconds."""
    launches, times = Counter(name for name, _ in kernels), Counter[str]()
    for name, microseconds in kernels:
        times[name] += microseconds
    busy = sum(times.values()) / 1e3
    print(
        f"    {title}: {len(kernels) / PROFILED:.0f} launches and copies, {milliseconds / PROFILED:.3f} ms a step, "
        f"the device computes {100 * busy / milliseconds:.0f} % of it"
    )
    for name, microseconds in times.most_common(SHOWN):
        print(f"      {microseconds / PROFILED:9.1f} us {launches[name] / PROFILED:6.1f} times  {name[:90]}")


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
