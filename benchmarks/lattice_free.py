"""Lattice-free MMI against Kaldi's algorithm in PyTorch, and against the cost of the network that it trains.

    python -m benchmarks.lattice_free [--one-thread]

128 chunks of 150 frames at a third of the rate, 50 outputs each, with numerators from alignments; a denominator graph
of about 3,000 states from a phone 4-gram of made-up words, 640 outputs that depend on the phone before.  Both sides
compute the criterion of the minibatch and its gradient in single precision, with two threads, and must agree.  PyTorch
gets the faster of two ways: gathers and sums over arcs, as Kaldi's kernels do, and products with sparse matrices, which
use our runs of arcs.  `RATIO lfmmi-train` is PyTorch's time over ours.  The network is a TDNN-F of 6 layers of 512
units with bottlenecks of 128; its forward and backward pass compute no criterion.
"""

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from benchmarks import training

SEQUENCES, STEPS, SUBSAMPLING = 128, 50, 3
PHONES, CONTEXTS = 40, 8
WORDS, SENTENCES, EXTRA_STATES = 2000, 3000, 1400
LEAKY = 1e-5
INPUTS, UNITS, BOTTLENECK, LAYERS = 200, 512, 128, 6
ROUNDS, REPETITIONS = 7, 3
OURS, NETWORK = "Argonaut", "the network"
MOST_DIFFERENCE = 1e-3  # of the criterion per frame, and of the gradient

LAYER = """\
layer(inputs, x) = [
    before = PastValue(inputs, 1, x, defaultHiddenActivity=0)
    L = Parameter(BOTTLENECK, inputs)
    M = Parameter(BOTTLENECK, inputs)
    V = Plus(Times(L, before), Times(M, x))
    after = FutureValue(BOTTLENECK, 1, V, defaultHiddenActivity=0)
    A = Parameter(UNITS, BOTTLENECK)
    C = Parameter(UNITS, BOTTLENECK)
    B = Parameter(UNITS)
    H = RectifiedLinear(Plus(Plus(Times(A, V), Times(C, after)), B))
]
"""


def description(outputs: int) -> str:
    """The network, with a criterion whose gradient is given."""
    lines = [LAYER.replace("BOTTLENECK", str(BOTTLENECK)).replace("UNITS", str(UNITS)), f"x = Input({INPUTS})"]
    lines += ["objectives = Input(1)", f"gradient = Input({outputs})", f"H0 = layer({INPUTS}, x)"]
    lines += [f"H{n} = layer({UNITS}, H{n - 1})" for n in range(1, LAYERS)]
    lines += [f"W = Parameter({outputs}, {UNITS})", f"y = Times(W, H{LAYERS - 1})"]
    return "\n".join([*lines, "J = DummyCriterion(objectives, gradient, y, tag=criterion)", ""])


def sentences(rng: Any) -> list[list[int]]:
    """Phones of sentences: words of 2 to 7 phones with Zipf's frequencies, silence first and sometimes between them."""
    import numpy as np

    shares = 1 / np.arange(1, PHONES) ** 0.7
    words = [list(rng.choice(PHONES - 1, rng.integers(2, 8), p=shares / shares.sum()) + 2) for _ in range(WORDS)]
    shares = 1 / np.arange(1, WORDS + 1)
    found = []
    for _ in range(SENTENCES):
        chosen = rng.choice(WORDS, rng.integers(3, 15), p=shares / shares.sum())
        found.append([1, *(phone for word in chosen for phone in (*words[word], *([1] if rng.random() < 0.2 else [])))])
    return found


def chunks() -> list[Any]:
    """The supervisions of a minibatch, side by side."""
    import numpy as np

    from decoder.sequence_training.chain.alignment import ChainTiming, PhoneSegments, aligned_numerator
    from decoder.sequence_training.chain.denominator import build_denominator
    from decoder.sequence_training.chain.outputs import ChainOutputs, monophone_outputs
    from decoder.sequence_training.chain.phone_lm import PhoneLmOptions, estimate_phone_lm
    from readers.minibatches.supervision import ChainSupervision, PlacedSupervision
    from readers.sources.chain.composition import LogDenominator, compose_aligned

    class Biphones(ChainOutputs):
        """Outputs by phone and by one of some classes of the phone before."""

        num_outputs = PHONES * CONTEXTS * 2
        uses_left = True

        def outputs(self, left: int, phone: int, right: int) -> tuple[int, int]:
            first = 2 * ((phone - 1) * CONTEXTS + left % CONTEXTS)
            return first, first + 1

    rng = np.random.default_rng(0)
    plain = monophone_outputs(["sil", *(f"p{n}" for n in range(1, PHONES))])
    outputs = Biphones(plain.names, plain.states)
    spoken = sentences(rng)
    graph = build_denominator(estimate_phone_lm(spoken, PhoneLmOptions(num_extra_states=EXTRA_STATES)), outputs)
    logarithms, found = LogDenominator.of(graph), []
    long = [phones for phones in spoken if len(phones) >= STEPS]
    for slot, phones in enumerate(long[:SEQUENCES]):
        starts = np.array([0, *accumulate(rng.integers(4, 13, len(phones)))], np.int64)
        starts = starts[starts < STEPS * SUBSAMPLING]
        names = [plain.phones[phone - 1] for phone in phones[: len(starts)]]
        segments = PhoneSegments(names, starts, STEPS * SUBSAMPLING)
        numerator = aligned_numerator(phones[: len(starts)], segments, outputs, ChainTiming(SUBSAMPLING))
        arrays = tuple(getattr(numerator, name) for name in numerator.names)
        composed = compose_aligned(arrays, logarithms, 0, STEPS)
        if composed is None:
            raise SystemExit(f"chunk {slot}: not in the denominator graph")
        found.append(PlacedSupervision(slot, 0, STEPS, ChainSupervision(f"chunk{slot}", STEPS, composed, graph)))
    return found


# ---- the sides: computations of the criterion and its gradient (outputs, columns)


def our_criterion(placed: list[Any], y: Any) -> Callable[[], tuple[float, Any]]:
    """As the node LFMMI computes it, without regularisation."""
    import numpy as np

    from acoustic.kernels.backend import Backend
    from acoustic.kernels.lattice_free.objective import LatticeFree

    gradient, team = np.empty_like(y), Backend(threads=training.threads()).team

    def compute() -> tuple[float, Any]:
        sequences = LatticeFree(placed, SEQUENCES, y.shape[0])
        terms = sequences.compute(y, LEAKY, team, gradient)
        return (terms.denominator - terms.numerator).sum(), gradient

    return compute


class TheirCriterion:
    """In PyTorch: tensors (states, sequences) for each frame; the numerators of all sequences as one graph.

    They are made on the CPU, whatever PyTorch's default device is; it computes on this device, so move it there.
    """

    def __init__(self, torch: Any, placed: list[Any], y: Any, sparse: bool) -> None:
        with torch.device("cpu"):
            self._make(torch, placed, y, sparse)

    def _make(self, torch: Any, placed: list[Any], y: Any, sparse: bool) -> None:
        import numpy as np

        graph = placed[0].supervision.denominator
        self.torch, self.sparse, self.states, self.outputs = torch, sparse, graph.num_states, graph.num_outputs
        self.y = torch.from_numpy(np.ascontiguousarray(y.T)).view(STEPS, SEQUENCES, -1).transpose(1, 2).contiguous()
        self.initial = torch.from_numpy(graph.initial.astype(np.float32))[:, None]
        self.source, self.target, self.output = (
            torch.from_numpy(one.astype(np.int64)) for one in (graph.from_state, graph.to_state, graph.output)
        )
        self.weight = torch.from_numpy(graph.probability)[:, None]
        runs, run = np.unique(graph.to_state.astype(np.int64) * graph.num_outputs + graph.output, return_inverse=True)
        self.run_state, self.run_output = (torch.from_numpy(one) for one in np.divmod(runs, graph.num_outputs))
        run, all_runs, ones = torch.from_numpy(run), torch.arange(len(runs)), torch.ones(len(runs))
        self.into_runs = self._matrix(run, self.source, self.weight[:, 0], len(runs), self.states)
        self.out_of_states = self._matrix(self.source, run, self.weight[:, 0], self.states, len(runs))
        self.into_states = self._matrix(self.run_state, all_runs, ones, self.states, len(runs))
        self.into_outputs = self._matrix(self.run_output, all_runs, ones, self.outputs, len(runs))
        self._join([one.supervision.numerator for one in placed])

    def to(self, device: str) -> "TheirCriterion":
        """Move all tensors to a device."""

        def moved(value: Any) -> Any:
            if isinstance(value, list):
                return [moved(one) for one in value]
            return value.to(device) if isinstance(value, self.torch.Tensor) else value

        self.__dict__.update({name: moved(value) for name, value in vars(self).items()})
        return self

    def _matrix(self, rows: Any, columns: Any, values: Any, height: int, width: int) -> Any:
        entries = self.torch.stack([rows, columns])
        return self.torch.sparse_coo_tensor(entries, values, (height, width)).coalesce().to_sparse_csr()

    def _join(self, graphs: list[Any]) -> None:
        """Numerators as one graph: for each frame (source, target, row of y flattened, log probability)."""
        import numpy as np

        sizes = np.append(0, np.cumsum([graph.num_states for graph in graphs]))
        self.num_sizes = sizes
        self.num_initial, self.num_final = (
            self.torch.from_numpy(np.concatenate([getattr(graph, name) for graph in graphs]))
            for name in ("initial", "final")
        )
        self.num_sequence = self.torch.from_numpy(np.repeat(np.arange(len(graphs)), np.diff(sizes)))
        self.frames = []
        for t in range(STEPS):
            parts = [slice(*graph.frame_arcs[t : t + 2]) for graph in graphs]
            columns = [
                [graph.from_state[part].astype(np.int64) + size for graph, part, size in zip(graphs, parts, sizes)],
                [graph.to_state[part].astype(np.int64) + size for graph, part, size in zip(graphs, parts, sizes)],
                [
                    graph.output[part].astype(np.int64) * SEQUENCES + s
                    for s, (graph, part) in enumerate(zip(graphs, parts))
                ],
                [graph.log_probability[part] for graph, part in zip(graphs, parts)],
            ]
            self.frames.append([self.torch.from_numpy(np.concatenate(column)) for column in columns])

    def __call__(self) -> tuple[float, Any]:
        posteriors = self.torch.empty_like(self.y)
        total = self._denominator(posteriors) - self._numerators(posteriors)
        return total.item(), posteriors.transpose(1, 2).reshape(STEPS * SEQUENCES, -1).T.cpu().numpy()

    def _denominator(self, posteriors: Any) -> Any:
        torch, probability = self.torch, self.y.clamp(-30, 30).exp()
        alphas, parts, scales = [self.initial.expand(-1, SEQUENCES) * (1 + LEAKY)], [], []
        for t in range(STEPS):
            if self.sparse:
                parts.append(self.into_runs @ alphas[-1])
                after = self.into_states @ (parts[-1] * probability[t].index_select(0, self.run_output))
            else:
                moves = alphas[-1].index_select(0, self.source) * self.weight
                moves *= probability[t].index_select(0, self.output)
                after = torch.zeros(self.states, SEQUENCES).index_add_(0, self.target, moves)
            scales.append(1 / after.sum(0))
            alphas.append(after.mul_(scales[-1]).add_(LEAKY * self.initial))
        beta = torch.full((self.states, SEQUENCES), 1.0)
        for t in reversed(range(STEPS)):
            if self.sparse:
                arriving = beta.index_select(0, self.run_state) * probability[t].index_select(0, self.run_output)
                arriving *= scales[t]
                posteriors[t] = self.into_outputs @ (arriving * parts[t])
                beta = self.out_of_states @ arriving
            else:
                moves = beta.index_select(0, self.target) * self.weight
                moves *= probability[t].index_select(0, self.output)
                moves *= scales[t]
                beta = torch.zeros(self.states, SEQUENCES).index_add_(0, self.source, moves)
                moves *= alphas[t].index_select(0, self.source)
                posteriors[t].zero_().index_add_(0, self.output, moves)
            beta += LEAKY * (self.initial * beta).sum(0)
        return SEQUENCES * torch.tensor(LEAKY).log1p() - torch.stack(scales).double().log().sum()

    def _numerators(self, posteriors: Any) -> Any:
        """Subtract the numerators' posteriors; return the sum of their logarithms."""
        alpha, scores = self.num_initial, []
        for t, (source, target, place, weight) in enumerate(self.frames):
            scores.append(alpha[source] + weight + self.y[t].view(-1)[place])
            alpha = self._log_sums(scores[-1], target, len(alpha))
        totals = self._log_sums(alpha + self.num_final, self.num_sequence, SEQUENCES)
        beta = self.num_final - totals[self.num_sequence]
        for t in reversed(range(STEPS)):
            source, target, place, weight = self.frames[t]
            arriving = beta[target]
            posteriors[t].view(-1).index_add_(0, place, (scores[t] + arriving).exp_(), alpha=-1)
            beta = self._log_sums(arriving + weight + self.y[t].view(-1)[place], source, len(beta))
        return totals.double().sum()

    def _log_sums(self, values: Any, places: Any, count: int) -> Any:
        top = self.torch.full((count,), -float("inf")).scatter_reduce_(0, places, values, "amax")
        finite = top.masked_fill(top == -float("inf"), 0)
        return self.torch.zeros(count).index_add_(0, places, (values - finite[places]).exp_()).log_() + finite


def our_network(outputs: int) -> Callable[[], None]:
    """A forward and a backward pass of the network, with a given gradient of its outputs."""
    import numpy as np

    from acoustic.descriptions.ndl.evaluate import Scope
    from acoustic.engine.engine import Engine
    from acoustic.network.network import Network
    from readers.config.syntax import Source
    from readers.minibatches.sequence_layout import SequenceLayout

    rng, columns = np.random.default_rng(2), SEQUENCES * STEPS
    network = Network(device=training.device)
    Scope(network).evaluate(Source.from_text(description(outputs), "tdnn.ndl"))
    network.validate()
    matrices = {
        "x": np.asfortranarray(rng.standard_normal((INPUTS, columns), dtype=np.float32)),
        "gradient": np.asfortranarray(rng.standard_normal((outputs, columns), dtype=np.float32) / 100),
        "objectives": np.zeros((1, columns), np.float32, order="F"),
    }
    matrices = {name: network.backend.asarray(matrix) for name, matrix in matrices.items()}
    layout, engine = SequenceLayout.of_lengths([STEPS] * SEQUENCES), Engine(network, ["J"])

    def compute() -> None:
        engine.forward(matrices, training=True, criterion="J", layout=layout)
        engine.backward("J")

    return compute


# ---- the comparison


def main() -> int:
    """Print the times of all sides and the ratio; libraries read their threads at the start: a new process."""
    if any(os.environ.get(name) != str(training.threads()) for name in training.VARIABLES):
        command = [sys.executable, "-m", "benchmarks.lattice_free", *sys.argv[1:]]
        return subprocess.run(command, env=training.environment()).returncode
    try:
        import torch
    except ImportError:
        print(
            "lattice-free: PyTorch is not installed; pip install '.[bench]' in the project's directory", file=sys.stderr
        )
        return 2
    import numpy as np

    warnings.filterwarnings("ignore", ".*[Ss]parse")
    torch.set_num_threads(training.threads())
    placed = chunks()
    graph, numerators = placed[0].supervision.denominator, [one.supervision.numerator for one in placed]
    print(
        f"  denominator: {graph.num_states} states, {len(graph.output)} arcs, {graph.num_outputs} outputs; numerators: "
        f"{np.mean([len(one.output) for one in numerators]):.0f} arcs; {SEQUENCES} chunks of {STEPS} outputs"
    )
    rng = np.random.default_rng(1)
    y = np.asfortranarray(2 * rng.standard_normal((graph.num_outputs, SEQUENCES * STEPS), dtype=np.float32))
    sides = {
        OURS: our_criterion(placed, y),
        "PyTorch (arcs)": TheirCriterion(torch, placed, y, sparse=False),
        "PyTorch (sparse)": TheirCriterion(torch, placed, y, sparse=True),
    }
    check_agreement(sides)
    sides[NETWORK] = our_network(graph.num_outputs)
    times = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            times[name].append(turn(side))
    medians = {name: float(np.median(one)) for name, one in times.items()}
    for name, one in times.items():
        print(f"    {name:24} {1e3 * medians[name]:7.0f} ms, best {1e3 * min(one):7.0f}")
    print(f"    criterion / network {medians[OURS] / medians[NETWORK]:.2f}; at most 1.5 expected")
    best = min((name for name in sides if name.startswith("PyTorch")), key=medians.get)
    ratios = sorted(theirs / ours for theirs, ours in zip(times[best], times[OURS]))
    print(f"    {best}: ratio per round {ratios[0]:.2f} to {ratios[-1]:.2f}")
    name = "lfmmi-train" if training.threads() > 1 else "lfmmi-train-one-thread"
    print(f"RATIO {name} {ratios[len(ratios) // 2]:.2f}", flush=True)
    return 0


def check_agreement(sides: dict[str, Callable[[], tuple[float, Any]]]) -> None:
    """End the program unless all sides compute the same."""
    import numpy as np

    value, gradient = sides[OURS]()
    gradient = gradient.copy()
    for name, side in sides.items():
        other, found = side()
        difference = max(abs(value - other) / (SEQUENCES * STEPS), float(np.abs(found - gradient).max()))
        if not difference <= MOST_DIFFERENCE:
            raise SystemExit(f"{name}: differs by {difference:.2g}; expected at most {MOST_DIFFERENCE:g}")


def turn(side: Callable[[], Any]) -> float:
    """The shortest seconds of some calls, after one to warm up."""
    clock, times = time.perf_counter if training.threads() > 1 else time.thread_time, []
    side()
    for _ in range(REPETITIONS):
        start = clock()
        side()
        times.append(clock() - start)
    time.sleep(0.1)  # idle threads of the other side look for work for a while
    return min(times)


if __name__ == "__main__":
    sys.exit(main())
