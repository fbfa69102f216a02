"""Recurrent loops: forward and backward against formulas written out, numeric slopes, and sequences one at a time."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import GradientChecker
from acoustic.network.network import Network
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.recurrence.loop_networks import (
    INPUTS,
    KINDS,
    SIZE,
    build,
    data,
    delay,
    lstm,
    new_network,
    packed,
    parameter,
    whole,
    with_criterion,
)
from tests.acoustic.recurrence.recurrent_networks import gradients, randomise


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [(1,), (6,), (5, 7, 2)])
def test_gradients_are_the_numeric_ones(kind, lengths):
    network = build(kind)
    matrices, layout = whole(lengths, *data(lengths))
    checker = GradientChecker(Engine(network, ["J"]), "J", matrices, layout=layout)
    computed = checker.gradients()
    for node in checker.learnable():
        np.testing.assert_allclose(computed[node.name], checker.numeric_gradient(node), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_sequences_in_parallel_give_the_sum_of_each_alone(kind):
    network, lengths = build(kind), (5, 7, 1, 4)
    xs, labels = data(lengths)
    alone = [whole((length,), [x], [y]) for length, x, y in zip(lengths, xs, labels)]
    total, sums = gradients(network, alone)
    together, grads = gradients(network, [whole(lengths, xs, labels)])
    assert together == pytest.approx(total, rel=1e-12)
    for name, expected in sums.items():
        np.testing.assert_allclose(grads[name], expected, rtol=1e-9, atol=1e-12)


def cut(lengths, sizes, xs, labels):
    """The minibatches of whole sequences cut after every so many steps; later parts go on with the earlier ones."""
    layout = SequenceLayout.of_lengths(lengths)
    slots, first = len(lengths), 0
    x, y = packed(xs), packed(labels)
    for size in sizes:
        steps, columns = slice(first, first + size), slice(first * slots, (first + size) * slots)
        part = SequenceLayout(slots, size, layout.starts[steps], layout.ends[steps], layout.gaps[steps])
        yield {"x": x[:, columns], "labels": y[:, columns]}, part
        first += size


@pytest.mark.parametrize("kind", ["simple", "simple, 2 steps", "lstm", "two lstms"])
@pytest.mark.parametrize("sizes", [(7,), (3, 4), (1, 1, 2, 1, 1, 1)])
def test_sequences_cut_in_parts_have_the_same_values(kind, sizes):
    network, lengths = build(kind), (5, 7, 1)
    xs, labels = data(lengths)
    engine = Engine(network, ["z", "J"])
    matrices, layout = whole(lengths, xs, labels)
    engine.forward(matrices, layout=layout)
    expected = engine.value("z").copy()
    engine = Engine(network, ["z", "J"])
    found = []
    for part, layout in cut(lengths, sizes, xs, labels):
        engine.forward(part, layout=layout)
        found.append(engine.value("z").copy())
    real = ~SequenceLayout.of_lengths(lengths).gap_columns
    np.testing.assert_allclose(np.concatenate(found, axis=1)[:, real], expected[:, real], rtol=1e-12)


@pytest.mark.parametrize("kind", ["simple", "simple, 2 steps", "lstm", "two delays"])
def test_gradients_of_a_part_are_those_with_the_state_held_fixed(kind):
    """Numerically: the first part is computed with the parameters as they are, the second with changed ones."""
    network, lengths = build(kind), (5, 7, 3)
    xs, labels = data(lengths)
    (head, first), (tail, second) = cut(lengths, (4, 3), xs, labels)
    engine = Engine(network, ["J"])
    engine.forward(head, training=True, layout=first)
    engine.forward(tail, training=True, layout=second)
    engine.backward()
    computed = {node.name: engine.gradient(node.name).copy() for node in network.parameters()}
    epsilon, rng = 1e-5, np.random.default_rng(1)
    for node in network.parameters():
        direction, original, values = rng.standard_normal(node.value.shape), node.value, []
        for sign in (1, -1):
            engine.forward(head, training=True, layout=first)
            node.value = np.asfortranarray(original + sign * epsilon * direction)
            engine.forward(tail, training=True, layout=second)
            values.append(float(engine.value("J")[0, 0]))
            node.value = original
        slope = (values[0] - values[1]) / (2 * epsilon)
        assert np.vdot(direction, computed[node.name]) == pytest.approx(slope, rel=1e-6, abs=1e-8)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("peepholes", [False, True])
def test_lstm_is_its_formula(peepholes):
    """Forward as the book writes it; backward derived by hand for one step after another."""
    network = new_network()
    with_criterion(network, lstm(network, "h", "x", INPUTS, peepholes))
    lengths = (6,)
    (x,), (labels,) = data(lengths)
    value = {node.name.removeprefix("h."): node.value for node in network.parameters()}
    zero = {f"P{g}": np.zeros((SIZE, 1)) for g in "ifo"}
    p = zero | value
    h, c = np.full((SIZE, 1), 0.1), np.zeros((SIZE, 1))
    states, outputs = [], []
    for t in range(x.shape[1]):
        xt, h1, c1 = x[:, t : t + 1], h, c
        pre = {g: p[f"W{g}"] @ xt + p[f"R{g}"] @ h + p[f"b{g}"] for g in "ifzo"}
        i, f, z = sigmoid(pre["i"] + p["Pi"] * c), sigmoid(pre["f"] + p["Pf"] * c), np.tanh(pre["z"])
        c = f * c1 + i * z
        o = sigmoid(pre["o"] + p["Po"] * c)
        h = o * np.tanh(c)
        states.append((xt, h1, c1, i, f, z, o, c))
        outputs.append(h)
    outputs = np.concatenate(outputs, axis=1)
    logits = p["V"] @ outputs
    probability = np.exp(logits) / np.exp(logits).sum(axis=0)
    total, found = gradients(network, [whole(lengths, [x], [labels])])
    assert total == pytest.approx(-np.log(probability[labels > 0]).sum())
    grads = {name: np.zeros_like(matrix) for name, matrix in p.items()}
    dz = probability - labels
    grads["V"] = dz @ outputs.T
    dh1, dc1 = np.zeros((SIZE, 1)), np.zeros((SIZE, 1))
    for t, (xt, h1, c1, i, f, z, o, c) in reversed(list(enumerate(states))):
        dh = p["V"].T @ dz[:, t : t + 1] + dh1
        d = {"o": dh * np.tanh(c) * o * (1 - o)}
        dc = dc1 + dh * o * (1 - np.tanh(c) ** 2) + p["Po"] * d["o"]
        d |= {"i": dc * z * i * (1 - i), "f": dc * c1 * f * (1 - f), "z": dc * i * (1 - z**2)}
        for g in "ifzo":
            grads[f"W{g}"] += d[g] @ xt.T
            grads[f"R{g}"] += d[g] @ h1.T
            grads[f"b{g}"] += d[g]
        for g, cell in (("i", c1), ("f", c1), ("o", c)):
            grads[f"P{g}"] += d[g] * cell
        dh1 = sum(p[f"R{g}"].T @ d[g] for g in "ifzo")
        dc1 = dc * f + p["Pi"] * d["i"] + p["Pf"] * d["f"]
    for node in network.parameters():
        expected = grads[node.name.removeprefix("h.")]
        np.testing.assert_allclose(found[node.name], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("lengths", [(9,), (6, 9, 2)])
def test_lstm_is_that_of_pytorch(num_layers, lengths):
    """Values and gradients in single precision, layers on top of each other, sequences side by side."""
    torch = pytest.importorskip("torch")
    network = Network("float", threads=1)
    network.add("Input", "x", rows=INPUTS)
    network.add("Input", "labels", rows=SIZE)
    top = "x"
    for layer in range(num_layers):
        top = lstm(network, f"l{layer}", top, INPUTS if layer == 0 else SIZE, peepholes=False)
        network[f"l{layer}.h1"].settings["defaultHiddenActivity"] = 0.0
    network.criteria.append(network.add("SquareError", "J", "labels", top).name)
    randomise(network)
    other = torch.nn.LSTM(INPUTS, SIZE, num_layers)
    names = {"weight_ih": "W", "weight_hh": "R", "bias_ih": "b"}
    with torch.no_grad():
        for name, tensor in other.named_parameters():
            kind, layer = name.rsplit("_l", 1)
            tensor.zero_()
            if kind in names:
                ours = [network[f"l{layer}.{names[kind]}{gate}"].value for gate in "ifzo"]
                tensor += torch.tensor(np.concatenate(ours)).reshape(tensor.shape)
    xs, labels = ([one.astype(np.float32) for one in matrices] for matrices in data(lengths))
    total = 0
    for x, y in zip(xs, labels):
        total = total + ((other(torch.tensor(x.T))[0] - torch.tensor(y.T)) ** 2).sum() / 2
    total.backward()
    found, sums = gradients(network, [whole(lengths, xs, labels)])
    assert found == pytest.approx(float(total.detach()), rel=1e-5)
    for name, tensor in other.named_parameters():
        kind, layer = name.rsplit("_l", 1)
        if kind in names:
            ours = np.concatenate([sums[f"l{layer}.{names[kind]}{gate}"] for gate in "ifzo"])
            np.testing.assert_allclose(ours, tensor.grad.numpy().reshape(ours.shape), rtol=1e-5, atol=1e-5)


# A node in a loop, by the types that it is made of; h is what it delays, u comes from outside, P a column, M a matrix.
INSIDE = [
    *(
        ("one", name, ("sum",), {})
        for name in ("Sigmoid", "Tanh", "RectifiedLinear", "Sin", "Cos", "Negate", "Softmax")
    ),
    *(("one", name, ("sum",), {}) for name in ("LogSoftmax", "Exp", "Dropout")),
    *(("two", name, ("h", "u"), {}) for name in ("Plus", "Minus", "ElementTimes", "LogPlus")),
    *(("two", name, ("u", "h"), {}) for name in ("Plus", "Minus", "ElementTimes")),
    *(("column", name, ("h", "P"), {}) for name in ("Plus", "Minus", "ElementTimes")),
    ("itself", "ElementTimes", ("h", "h"), {}),
    ("diagonal", "DiagTimes", ("P", "h"), {}),
    ("matrix", "Times", ("M", "h"), {}),
    ("transposed", "TransposeTimes", ("M", "h"), {}),
    ("number", "Scale", ("n", "h"), {}),
    ("per row", "ColumnElementTimes", ("h", "P"), {}),
    ("per column", "RowElementTimes", ("h", "row"), {}),
    ("slice", "RowStack", ("top", "rest"), {}),
]


@pytest.mark.parametrize(("title", "type_name", "operands", "options"), INSIDE, ids=lambda one: str(one))
def test_each_node_inside_a_loop(title, type_name, operands, options):
    network = new_network()
    h = delay(network, "h")
    network.add("Times", "u", parameter(network, "W", SIZE, INPUTS), "x")
    network.add("SumColumnElements", "row", "u")
    parameter(network, "P", SIZE)
    parameter(network, "M", SIZE, SIZE)
    parameter(network, "n", 1)
    network.add("Plus", "sum", "u", h)
    network.add("RowSlice", "rest", h, startRow=0, numRows=1)
    network.add("RowSlice", "top", h, startRow=1, numRows=2)
    network.add(type_name, "node", *operands, **options)
    network.add("Plus", "around", "node", "u")
    network.add("Tanh", "out", "around")
    network.connect(h, "out")
    with_criterion(network, "out")
    lengths = (4, 3)
    matrices, layout = whole(lengths, *data(lengths))
    settings = {"dropout_rate": 0.4, "seed": 3} if type_name == "Dropout" else {}
    checker = GradientChecker(Engine(network, ["J"]), "J", matrices, layout=layout, **settings)
    computed = checker.gradients()
    for node in checker.learnable():
        np.testing.assert_allclose(computed[node.name], checker.numeric_gradient(node), rtol=1e-5, atol=1e-7)
