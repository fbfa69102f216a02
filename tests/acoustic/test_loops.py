"""Recurrent loops: forward and backward against formulas written out, numeric slopes, and sequences one at a time."""

import numpy as np
import pytest

from acoustic.editing import clone, copy_nodes, rename, subtree
from acoustic.engine import Engine
from acoustic.forward_mode import jacobian_vector_product
from acoustic.gradient_check import GradientChecker
from acoustic.model_file import load_model, save_model
from acoustic.ndl.evaluate import Scope
from acoustic.network import Network
from acoustic.order import forward_order
from readers.config_syntax import Source
from readers.errors import ModelError, ShapeError
from readers.sequences import SequenceLayout

SIZE, INPUTS = 3, 4


def randomise(network, scale=0.6, seed=5):
    """Parameters of some size, so that everything shows."""
    rng = np.random.default_rng(seed)
    for node in network.parameters():
        network.set_value(node, rng.standard_normal(node.value.shape) * scale)
    return network


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


def gradients(network, batches):
    """(sum of the criterion, sums of the gradients by name) over (matrices, layout), in order."""
    learning = [node for node in forward_order([network["J"]]) if node.needs_gradient]
    engine = Engine(network, ["J"])
    total, sums = 0.0, {}
    for matrices, layout in batches:
        engine.forward(matrices, training=True, layout=layout)
        total += float(engine.value("J")[0, 0])
        engine.backward()
        for node in learning:
            sums[node.name] = sums.get(node.name, 0) + engine.gradient(node.name).copy()
    return total, sums


def whole(lengths, xs, labels):
    return {"x": packed(xs), "labels": packed(labels)}, SequenceLayout.of_lengths(lengths)


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


def test_a_delay_outside_a_loop_shifts_each_sequence():
    network = new_network()
    network.add("PastValue", "past", "x", rows=INPUTS, timeStep=2, defaultHiddenActivity=7)
    network.add("FutureValue", "future", "x", rows=INPUTS)
    engine = Engine(network, ["past", "future"])
    xs, _ = data((2, 4))
    engine.forward({"x": packed(xs)}, layout=SequenceLayout.of_lengths((2, 4)))
    past, future = (np.reshape(np.asarray(engine.value(name)), (INPUTS, 4, 2)) for name in ("past", "future"))
    assert (past[:, :2] == 7).all()
    np.testing.assert_array_equal(past[:, 2:, 1], xs[1][:, :2])
    np.testing.assert_array_equal(future[:, 0, 0], xs[0][:, 1])
    np.testing.assert_array_equal(future[:, :3, 1], xs[1][:, 1:])
    assert (future[:, 1, 0] == 0.1).all()
    assert (future[:, 3] == 0.1).all()


def test_columns_without_a_frame_are_left_out_of_sums():
    """Of a network without loops, too, and whatever the threads."""
    for threads in (1, 2):
        network = Network("double", threads=threads)
        network.add("Input", "x", rows=INPUTS)
        network.add("Input", "labels", rows=SIZE)
        network.add("Times", "hidden", parameter(network, "W", SIZE, INPUTS), "x")
        with_criterion(network, network.add("Plus", "h", "hidden", parameter(network, "b", SIZE)).name)
        network.add("ErrorPrediction", "errors", "labels", "z")
        lengths = (90, 20, 1)
        xs, labels = data(lengths)
        plain = {"x": np.concatenate(xs, axis=1), "labels": np.concatenate(labels, axis=1)}
        matrices, layout = whole(lengths, xs, labels)
        results = []
        for fed, how in ((plain, None), (matrices, layout)):
            engine = Engine(network, ["J", "errors"])
            engine.forward(fed, training=True, layout=how)
            values = [engine.value("J").copy(), engine.value("errors").copy()]
            engine.backward()
            results.append([*values, *(engine.gradient(node.name).copy() for node in network.parameters())])
        for one, other in zip(*results):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_faults_are_named():
    network = build("simple")
    (x,), (labels,) = data((4,))
    fed, layout = whole((4,), [x], [labels])
    engine = Engine(network, ["J"])
    with pytest.raises(ModelError, match=r"'h.past' .PastValue.: frames on their own; expected whole sequences"):
        engine.forward(fed)
    goes_on = SequenceLayout(1, 4, np.zeros((4, 1), bool), layout.ends, layout.gaps)
    with pytest.raises(ModelError, match="slot 0: goes on with a sequence that the minibatch before did not hold"):
        engine.forward(fed, layout=goes_on)
    engine.forward(fed, layout=layout)
    with pytest.raises(ModelError, match="slot 0: goes on"):
        engine.forward(fed, layout=goes_on)  # the one before has ended
    with pytest.raises(ShapeError, match="sequences of 5 columns; expected 4"):
        engine.forward(fed, layout=SequenceLayout.of_lengths((5,)))


def test_loops_that_cannot_be_are_refused():
    network = new_network()
    delay(network, "past")
    delay(network, "future", type_name="FutureValue")
    with pytest.raises(ModelError, match=r"'past' .PastValue.: input 0 .m. is not connected"):
        network.validate()
    network.add("Plus", "h", "past", "future")
    network.connect("past", "h")
    network.connect("future", "h")
    with pytest.raises(
        ModelError, match=r"'past': in one loop with 'future' \(future, h, past\); expected PastValue or"
    ):
        network.validate()
    with pytest.raises(ShapeError, match=r"'past' .PastValue.: m 'x' is 4x.; expected 3 rows"):
        network.connect("past", "x")
    with pytest.raises(ModelError, match="timeStep=0; expected at least 1"):
        delay(network, "none", timeStep=0)
    network = new_network()
    past = delay(network, "past")
    network.add("SumElements", "sum", past)
    network.add("Plus", "h", "labels", "sum")
    network.connect(past, "h")
    with pytest.raises(ModelError, match=r"'sum' .SumElements.: in the loop of h, past, sum; expected nodes"):
        Engine(network, ["h"])


@pytest.mark.parametrize("kind", ["simple", "two delays"])
def test_forward_mode_wants_sequences(kind):
    network, (matrices, _) = build(kind), whole((4,), *data((4,)))
    with pytest.raises(ModelError, match=r"PastValue\): frames on their own; expected whole sequences"):
        jacobian_vector_product(network, ["J"], matrices, {})


def test_a_network_with_loops_can_be_edited():
    network, lengths = build("lstm"), (3, 5)
    batch = [whole(lengths, *data(lengths))]
    twin = clone(network)
    rename(twin, {"h": "cell output"})
    copy_nodes(
        twin,
        twin,
        [(name, f"second.{name}") for name in subtree(twin, "J") if name not in ("x", "labels")],
        shared=["x", "labels"],
    )
    twin.validate()
    assert gradients(twin, batch)[0] == gradients(network, batch)[0]
    engine = Engine(twin, ["second.J"])
    engine.forward(batch[0][0], layout=batch[0][1])
    assert float(engine.value("second.J")[0, 0]) == gradients(network, batch)[0]


def test_a_network_with_loops_is_saved_and_loaded(tmp_path):
    network, lengths = build("two delays"), (3, 5)
    save_model(network, tmp_path / "model")
    again = load_model(tmp_path / "model")
    batch = [whole(lengths, *data(lengths))]
    assert gradients(again, batch)[0] == gradients(network, batch)[0]
    save_model(again, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_an_ndl_description_may_use_what_comes_later():
    network = Network("double", threads=1)
    Scope(network).evaluate(
        Source.from_text(
            "x=Input(4)\nlabels=Input(3)\nold=Delay(3, h, delayTime=1)\nW=Parameter(3,4)\nR=Parameter(3,3)\n"
            "b=Parameter(3)\nsum=Plus(Times(W,x), Times(R,old))\nh=Tanh(Plus(sum,b))\nV=Parameter(3,3)\nz=Times(V,h)\n"
            "J=CrossEntropyWithSoftmax(labels, z, tag=criterion)\n",
            "net.ndl",
        )
    )
    network.validate()
    lengths = (3, 5)
    own = build("simple")
    for name, other in (("W", "h.W"), ("R", "h.R"), ("b", "h.b"), ("V", "V")):
        network.set_value(name, own[other].value)
    batch = [whole(lengths, *data(lengths))]
    assert gradients(network, batch)[0] == pytest.approx(gradients(own, batch)[0], rel=1e-12)
