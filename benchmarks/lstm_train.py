"""Training frames per second of LSTM networks against PyTorch's nn.LSTM, two threads each.

    python -m benchmarks.lstm_train [--one-thread]

40 inputs, one or three layers of 256 or 512 cells, 183 outputs, cross-entropy with softmax; a minibatch is 16 sequences
of 20 frames side by side; otherwise as benchmarks/dnn_train.py.  Our network is written in the description language,
gate by gate, as a user would write a cell of his own, without peepholes, which PyTorch does not have; of PyTorch's two
biases, which add up, one stays 0.  PyTorch gets the faster of its two implementations, oneDNN's and its own.  Behind
the ratios stands how the cost of a frame grows with cells and layers on either side, by the best minibatches.
"""

import sys
import warnings
from contextlib import nullcontext
from functools import partial
from typing import Any

from benchmarks import training
from benchmarks.layers import MOMENTUM, RATE_PER_FRAME, our_options

INPUTS, OUTPUTS = 40, 183
SEQUENCES, STEPS = 16, 20
FRAMES = SEQUENCES * STEPS
SIZES = [(256, 1), (256, 3), (512, 1), (512, 3)]  # cells of a layer, layers
VALUES = 6  # of a cell and frame: four gates, the cell, its output
GATES = "IFZO"  # input, forget, cell and output, as PyTorch stacks them
IMPLEMENTATIONS = ("oneDNN", "ATen")

CELL = """\
gate(inputs, cells, x, h) = [
    W = Parameter(cells, inputs)
    R = Parameter(cells, cells)
    B = Parameter(cells)
    V = Plus(Plus(Times(W, x), B), Times(R, h))
]
lstm(inputs, cells, x) = [
    hPast = PastValue(cells, 1, H, defaultHiddenActivity=0)
    cPast = PastValue(cells, 1, C, defaultHiddenActivity=0)
    I = gate(inputs, cells, x, hPast)
    F = gate(inputs, cells, x, hPast)
    Z = gate(inputs, cells, x, hPast)
    O = gate(inputs, cells, x, hPast)
    C = Plus(ElementTimes(Sigmoid(F), cPast), ElementTimes(Sigmoid(I), Tanh(Z)))
    H = ElementTimes(Sigmoid(O), Tanh(C))
]
"""


def description(cells: int, layers: int) -> str:
    """The network in the description language."""
    lines = [CELL, f"features = Input({INPUTS})", f"labels = Input({OUTPUTS})"]
    below, rows = "features", INPUTS
    for layer in range(layers):
        lines.append(f"L{layer} = lstm({rows}, {cells}, {below})")
        below, rows = f"L{layer}", cells
    lines += [f"V = Parameter({OUTPUTS}, {rows})", f"B = Parameter({OUTPUTS})", f"Y = Plus(Times(V, {below}), B)"]
    return "\n".join([*lines, "CE = CrossEntropyWithSoftmax(labels, Y, tag=criterion)", ""])


def names(layers: int) -> list[str]:
    """Of our parameters, in the order of PyTorch's: per layer the gates' W, then R, then B; then the top."""
    gates = [f"L{layer}.{gate}.{kind}" for layer in range(layers) for kind in "WRB" for gate in GATES]
    return [*gates, "V", "B"]


def shapes(cells: int, layers: int) -> list[tuple[int, int]]:
    found = []
    for layer in range(layers):
        for cols in (cells if layer else INPUTS, cells, 1):
            found += [(cells, cols)] * len(GATES)
    return [*found, (OUTPUTS, cells), (OUTPUTS, 1)]


def operations(cells: int, layers: int) -> int:
    """Of the products of one update: three per weight and frame, but the inputs have no gradient."""
    weights = sum(rows * cols for rows, cols in shapes(cells, layers) if cols > 1)
    return FRAMES * (6 * weights - 2 * len(GATES) * cells * INPUTS)


def our_step(cells: int, layers: int, sequences: int) -> training.Step:
    """An update of our network with another number of sequences."""
    features, labels = training.make_data(INPUTS, OUTPUTS, sequences * STEPS)
    weights = case(cells, layers).weights()
    return ours(cells, layers, weights, features, labels, 0.0, sequences)[0]


def ours(
    cells: int,
    layers: int,
    weights: list,
    features: Any,
    labels: Any,
    dropout: float,
    sequences: int = SEQUENCES,
) -> training.Side:
    from acoustic.descriptions.ndl.evaluate import Scope
    from acoustic.network.network import Network
    from readers.config.syntax import Source
    from readers.minibatches.sequence_layout import SequenceLayout

    network = Network(device=training.device)
    Scope(network).evaluate(Source.from_text(description(cells, layers), "lstm.ndl"))
    network.validate()
    layout = SequenceLayout.of_lengths([STEPS] * sequences)
    parameters = names(layers)
    return training.our_side(
        network, our_options(FRAMES), weights, features, labels, dropout, layout=layout, parameters=parameters
    )


def theirs(layers: int, torch: Any, weights: list, features: Any, labels: Any, dropout: float, way: str):
    import numpy as np

    warnings.filterwarnings("ignore", ".*TF32")  # which is for graphics cards
    loop, implementation = way.split(", ")
    cells = weights[-2].shape[1]
    count = len(GATES)
    stacked = [np.concatenate(weights[k : k + count]) for k in range(0, len(weights) - 2, count)]

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = torch.nn.LSTM(INPUTS, cells, layers)
            self.linear = torch.nn.Linear(cells, OUTPUTS)

        def forward(self, x: Any) -> Any:
            with nullcontext() if implementation == "oneDNN" else torch.backends.mkldnn.flags(enabled=False):
                return self.linear(self.lstm(x)[0].reshape(FRAMES, cells))

    network = Network()
    mine = []
    with torch.no_grad():
        for layer in range(layers):
            tensors = [getattr(network.lstm, f"{kind}_l{layer}") for kind in ("weight_ih", "weight_hh", "bias_ih")]
            for tensor, weight in zip(tensors, stacked[3 * layer :]):
                tensor.copy_(torch.from_numpy(weight.reshape(tensor.shape)))
            mine += tensors
            second = getattr(network.lstm, f"bias_hh_l{layer}")
            second.zero_()
            second.requires_grad = False
        network.linear.weight.copy_(torch.from_numpy(weights[-2]))
        network.linear.bias.copy_(torch.from_numpy(weights[-1][:, 0]))
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimiser = training.momentum_optimiser(torch, trained, RATE_PER_FRAME, MOMENTUM, loop)
    x = torch.from_numpy(features.T.reshape(STEPS, SEQUENCES, INPUTS).copy())

    def current() -> list:
        values = [part for tensor in mine for part in np.split(tensor.detach().cpu().numpy(), count)]
        values += [tensor.detach().cpu().numpy() for tensor in (network.linear.weight, network.linear.bias)]
        return [value if value.ndim == 2 else value[:, None] for value in values]

    return training.their_side(torch, network, optimiser, x, labels, current)


def case(cells: int, layers: int) -> training.Case:
    return training.Case(
        name=f"lstm-train-{cells}-{layers}",
        title=f"{layers} {'layers' if layers > 1 else 'layer'} of {cells} LSTM cells, {SEQUENCES} sequences of {STEPS}",
        frames=FRAMES,
        shapes=shapes(cells, layers),
        operations=operations(cells, layers),
        values=FRAMES * (VALUES * cells * layers + OUTPUTS),
        data=partial(training.make_data, INPUTS, OUTPUTS, FRAMES),
        ours=partial(ours, cells, layers),
        theirs=partial(theirs, layers),
        ways=[f"{loop}, {implementation}" for loop in training.LOOPS for implementation in IMPLEMENTATIONS],
    )


CASES = [case(cells, layers) for cells, layers in SIZES]


def growth(figures: dict[str, training.Figures]) -> None:
    """Print how many times the cost of a frame of one size is that of another, on either side, by the best minibatches.

    The best: what else the machine has to do slows large networks, which live in the shared cache, more than small
    ones.
    """
    pairs = [((256, layers), (512, layers)) for layers in (1, 3)] + [((cells, 1), (cells, 3)) for cells in (256, 512)]
    print("  growth of the cost of a frame, by the best minibatches (by medians)")
    for small, large in pairs:
        low, high = (figures[f"lstm-train-{cells}-{layers}"] for cells, layers in (small, large))
        ours, theirs = high.our_best / low.our_best, high.their_best / low.their_best
        print(
            f"    {small[1]} x {small[0]} to {large[1]} x {large[0]} cells: "
            f"Argonaut {ours:.2f} ({high.ours / low.ours:.2f}), PyTorch {theirs:.2f} ({high.theirs / low.theirs:.2f}): "
            f"ours grows {'no faster' if ours <= theirs else f'{ours / theirs:.2f} times as fast'}"
        )


if __name__ == "__main__":
    sys.exit(training.main("benchmarks.lstm_train", CASES, growth))
