"""Networks with loops, built node by node, their minibatches, and sums of gradients; see recurrent_networks.py for
NDL."""

import numpy as np

from acoustic.network.network import Network
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.recurrence.recurrent_networks import randomise

SIZE, INPUTS = 3, 4


def new_network():
    network = Network("double", threads=1)
    network.add("Input", "x", rows=INPUTS)
    network.add("Input", "labels", rows=SIZE)
    return network


def parameter(network, name, rows, cols=1):
    return network.add("Parameter", name, rows=rows, cols=cols).name


def delay(network, name, rows=SIZE, type_name="PastValue", **options):
    network.add_node(type_name, name, [None], {"rows": rows, **options})
    return name


def simple_rnn(network, name, below, rows, type_name="PastValue", **options):
    """h(t) = tanh(W x(t) + R h(t - k) + b); returns the name of h."""
    past = delay(network, f"{name}.past", type_name=type_name, **options)
    wx = network.add("Times", f"{name}.wx", parameter(network, f"{name}.W", SIZE, rows), below)
    rh = network.add("Times", f"{name}.rh", parameter(network, f"{name}.R", SIZE, SIZE), past)
    total = network.add(
        "Plus", f"{name}.total", network.add("Plus", f"{name}.sum", wx, rh), parameter(network, f"{name}.b", SIZE)
    )
    network.add("Tanh", name, total)
    network.connect(past, name)
    return name


def lstm(network, name, below, rows, peepholes=True):
    """Eqs. 2.178 to 2.182 of the book; returns the name of h."""
    h, c = delay(network, f"{name}.h1"), delay(network, f"{name}.c1", defaultHiddenActivity=0)

    def gate(g, cell, squash="Sigmoid"):
        wx = network.add("Times", f"{name}.wx{g}", parameter(network, f"{name}.W{g}", SIZE, rows), below)
        rh = network.add("Times", f"{name}.rh{g}", parameter(network, f"{name}.R{g}", SIZE, SIZE), h)
        total = network.add(
            "Plus",
            f"{name}.sum{g}",
            network.add("Plus", f"{name}.xb{g}", wx, parameter(network, f"{name}.b{g}", SIZE)),
            rh,
        )
        if cell is not None and peepholes:
            peep = network.add("DiagTimes", f"{name}.peep{g}", parameter(network, f"{name}.P{g}", SIZE), cell)
            total = network.add("Plus", f"{name}.all{g}", total, peep)
        return network.add(squash, f"{name}.{g}", total)

    i, f, z = gate("i", c), gate("f", c), gate("z", None, "Tanh")
    kept = network.add("ElementTimes", f"{name}.kept", f, c)
    cell = network.add("Plus", f"{name}.c", kept, network.add("ElementTimes", f"{name}.new", i, z))
    o = gate("o", cell)
    network.add("ElementTimes", name, o, network.add("Tanh", f"{name}.squashed", cell))
    network.connect(h, name)
    network.connect(c, cell)
    return name


def with_criterion(network, top):
    rows = network.shapes[top].rows
    z = network.add("Times", "z", parameter(network, "V", SIZE, rows), top)
    network.criteria.append(network.add("CrossEntropyWithSoftmax", "J", "labels", z).name)
    network.validate()
    return randomise(network)


def build(kind):
    network = new_network()
    if kind == "simple":
        top = simple_rnn(network, "h", "x", INPUTS)
    elif kind == "simple, 2 steps":
        top = simple_rnn(network, "h", "x", INPUTS, timeStep=2)
    elif kind == "future":
        top = simple_rnn(network, "h", "x", INPUTS, "FutureValue", defaultHiddenActivity=-0.3)
    elif kind == "lstm":
        top = lstm(network, "h", "x", INPUTS)
    elif kind == "two lstms":
        top = lstm(network, "h2", lstm(network, "h1", "x", INPUTS), SIZE)
    elif kind == "bidirectional":
        past, future = simple_rnn(network, "p", "x", INPUTS), simple_rnn(network, "f", "x", INPUTS, "FutureValue")
        top = network.add("RowStack", "both", past, future).name
    elif kind == "two delays":
        # One loop with two ways around it, h(t) = tanh(W x + R h(t-1) + S h(t-2)), and a delay outside any loop.
        older = delay(network, "older", timeStep=2, defaultHiddenActivity=0.2)
        first = delay(network, "first")
        back = network.add("Times", "back", parameter(network, "R", SIZE, SIZE), first)
        far = network.add("Times", "far", parameter(network, "S", SIZE, SIZE), older)
        wx = network.add("Times", "wx", parameter(network, "W", SIZE, INPUTS), "x")
        both = network.add("Plus", "both", network.add("Plus", "sum", back, far), wx)
        top = network.add("Tanh", "h", both).name
        network.connect(older, top)
        network.connect(first, top)
        ahead = network.add("FutureValue", "ahead", top, rows=SIZE, timeStep=2)
        behind = network.add("PastValue", "behind", ahead, rows=SIZE, timeStep=3)
        top = network.add("RowStack", "stack", top, behind).name
    return with_criterion(network, top)


KINDS = ("simple", "simple, 2 steps", "future", "lstm", "two lstms", "bidirectional", "two delays")


def data(lengths, seed=0):
    """Sequences of inputs and labels."""
    rng = np.random.default_rng(seed)
    xs = [rng.standard_normal((INPUTS, length)) for length in lengths]
    labels = [np.eye(SIZE)[:, rng.integers(0, SIZE, length)] for length in lengths]
    return xs, labels


def packed(sequences):
    """Columns t * S + s, zeros in the gaps."""
    steps, slots = max(one.shape[1] for one in sequences), len(sequences)
    columns = np.zeros((sequences[0].shape[0], steps, slots))
    for s, one in enumerate(sequences):
        columns[:, : one.shape[1], s] = one
    return np.asfortranarray(columns.reshape(len(columns), -1))


def whole(lengths, xs, labels):
    return {"x": packed(xs), "labels": packed(labels)}, SequenceLayout.of_lengths(lengths)
