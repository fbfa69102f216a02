"""Training frames per second of a 792-512x3-183 sigmoid network against PyTorch, on the same data, two threads each.

    python -m benchmarks.dnn_train

Both train in one process, turn by turn: minibatches of 256 and 1024 frames, cross-entropy with softmax, stochastic
gradient descent with momentum, the loss read after every minibatch.  PyTorch runs with its faster optimiser loop of the
three it has.  Both start from the same weights, and must still agree after a few updates, else no figure.
With the extra `mkl` our products are made by MKL, as PyTorch's are; else by the OpenBLAS in numpy's wheels.
Beside the rates stands the share of the machine's matrix multiplication rate that training reaches: 2 operations per
weight and frame forward and for the weights' gradients, and for the layers' gradients but the first.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise

THREADS = 2
LAYERS = (792, 512, 512, 512, 183)
MINIBATCHES = (256, 1024)
ROUNDS = 9
SECONDS_A_TURN = 0.8
RATE_PER_FRAME, MOMENTUM = 0.8 / 1024, 0.9
UPDATES_TO_AGREE, LARGEST_DIFFERENCE = 5, 1e-4
FIXED = {name: str(THREADS) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


def main() -> int:
    """Print the figures and `RATIO dnn-train-N value`; libraries read their threads at the start: a new process."""
    if any(os.environ.get(name) != value for name, value in FIXED.items()):
        return subprocess.run([sys.executable, "-m", "benchmarks.dnn_train"], env=os.environ | FIXED).returncode
    try:
        import torch
    except ImportError:
        print("dnn-train: PyTorch is not installed; pip install 'argonaut-asr[bench]'", file=sys.stderr)
        return 2
    torch.set_num_threads(THREADS)
    from acoustic.blas import product_library

    name = "-".join(map(str, LAYERS))
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    print(
        f"dnn-train: {name} sigmoid, {THREADS} threads; ours with {product_library()}, PyTorch {torch.__version__}; "
        f"load before the start {load}"
    )
    for frames in MINIBATCHES:
        print(f"RATIO dnn-train-{frames} {measure(torch, frames):.2f}")
    return 0


def measure(torch, frames: int) -> float:
    """Our frames per second over PyTorch's: the median over the rounds."""
    import numpy as np

    features, labels = make_data(frames)
    ours, our_weights = our_trainer(features, labels)
    candidates = {}
    for loop in ("for each", "foreach", "fused"):
        theirs, their_weights = torch_trainer(torch, our_weights(), features, labels, loop)
        candidates[loop] = theirs
    for _ in range(UPDATES_TO_AGREE):
        ours()
        theirs()
    difference = max(np.abs(a - b).max() for a, b in zip(our_weights(), their_weights()))
    if not difference <= LARGEST_DIFFERENCE:
        raise SystemExit(
            f"dnn-train: weights differ by {difference:g} after {UPDATES_TO_AGREE} updates; expected equal"
        )
    loop = min(candidates, key=lambda name: turn(candidates[name])[0])
    rounds = []
    for _ in range(ROUNDS):
        rounds.append((turn(ours), turn(candidates[loop]), matmul_rate(torch, frames)))
    report(frames, loop, rounds)
    return float(np.median([theirs[1] / ours[1] for ours, theirs, _ in rounds]))


def turn(step: Callable[[], float]) -> tuple[float, float]:
    """(best, median) seconds of a minibatch over one turn, the first few left out while threads wake."""
    times = []
    end = time.perf_counter() + SECONDS_A_TURN
    while time.perf_counter() < end or len(times) < 8:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    time.sleep(0.1)  # the other side's idle threads look out for work for a while, and would be in the way
    times = sorted(times[3:])
    return times[0], times[len(times) // 2]


def report(frames: int, loop: str, rounds: list) -> None:
    import numpy as np

    pairs = list(pairwise(LAYERS))
    operations = frames * (6 * sum(a * b for a, b in pairs) - 2 * pairs[0][0] * pairs[0][1])
    peak = max(rate for *_, rate in rounds)
    for name, side in (("Argonaut", 0), (f"PyTorch ({loop})", 1)):
        median = np.median([one[side][1] for one in rounds])
        best = min(one[side][0] for one in rounds)
        print(
            f"  minibatch {frames:4}  {name:18} {frames / median:7.0f} frames/s, best {frames / best:7.0f}; "
            f"{operations / median / 1e9:4.0f} GFLOPS, {100 * operations / median / peak:3.0f} % of {peak / 1e9:.0f}"
        )
    best = min(one[1][0] for one in rounds) / min(one[0][0] for one in rounds)
    ratios = sorted(theirs[1] / ours[1] for ours, theirs, _ in rounds)
    print(f"  ratio per round {ratios[0]:.2f} to {ratios[-1]:.2f}; of the best minibatches {best:.2f}")


def make_data(frames: int):
    """Features (792, N) and one-hot labels (183, N), float32, Fortran order."""
    import numpy as np

    rng = np.random.default_rng(0)
    features = np.asfortranarray(rng.standard_normal((LAYERS[0], frames), dtype=np.float32))
    labels = np.zeros((LAYERS[-1], frames), dtype=np.float32, order="F")
    labels[rng.integers(0, LAYERS[-1], frames), np.arange(frames)] = 1
    return features, labels


def our_trainer(features, labels):
    """(one update, returning the loss; the weights as a list)."""
    from acoustic.engine import Engine
    from acoustic.simple_builder import SimpleNetworkOptions, build_simple_network
    from acoustic.training.options import TrainingOptions
    from acoustic.training.update import Updater

    frames = features.shape[1]
    network = build_simple_network(SimpleNetworkOptions(layer_sizes=LAYERS, uniform_init=False))
    criterion = network.criteria[0]
    engine = Engine(network, [criterion])
    options = TrainingOptions(max_epochs=1, learning_rates_per_sample=RATE_PER_FRAME, minibatch_size=frames)
    update = Updater(network, options)
    matrices = {"features": features, "labels": labels}

    def step() -> float:
        engine.forward(matrices, training=True)
        update.begin(RATE_PER_FRAME, MOMENTUM, frames)
        loss = float(engine.value(criterion)[0, 0])
        engine.backward(criterion, on_gradient=update)
        return loss

    return step, lambda: [node.value.copy() for node in network.parameters()]


def torch_trainer(torch, weights: list, features, labels, loop: str):
    """The same for PyTorch, from our weights W0, B0, W1, ...; its labels are class numbers."""
    layers = []
    for weight, bias in zip(weights[::2], weights[1::2]):
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weight))
            linear.bias.copy_(torch.from_numpy(bias[:, 0]))
        layers += [linear, torch.nn.Sigmoid()]
    network = torch.nn.Sequential(*layers[:-1])
    settings = {"foreach": {"foreach": True}, "fused": {"fused": True}}.get(loop, {"foreach": False})
    optimiser = torch.optim.SGD(
        network.parameters(), lr=RATE_PER_FRAME, momentum=MOMENTUM, dampening=MOMENTUM, **settings
    )
    for parameter in network.parameters():  # else its first update takes the whole gradient
        optimiser.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    criterion = torch.nn.CrossEntropyLoss(reduction="sum")
    x = torch.from_numpy(features.T.copy())
    y = torch.from_numpy(labels.argmax(axis=0))

    def step() -> float:
        optimiser.zero_grad()
        loss = criterion(network(x), y)
        loss.backward()
        optimiser.step()
        return loss.item()

    def current() -> list:
        values = [parameter.detach().numpy() for parameter in network.parameters()]
        return [value if value.ndim == 2 else value[:, None] for value in values]

    return step, current


def matmul_rate(torch, frames: int) -> float:
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


if __name__ == "__main__":
    sys.exit(main())
