"""One battery over every registered node type: shapes, layout, gradients, accumulation, faults.

A node type without an example here fails `test_every_registered_node_has_an_example`.  Gradients are compared with the
definition (book eq. 2.5) in double precision; values with formulas written out again below.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from acoustic.engine import Engine
from acoustic.gradient_check import GradientChecker, check_gradients
from acoustic.gradients import Into
from acoustic.network import Network
from acoustic.node import VALUE, WORK, Run, Shape, node_class, registered_nodes
from readers.errors import ModelError, ShapeError

TOLERANCE = 1e-6
LEAVES = {"InputValue", "LearnableParameter", "Constant"}
STATISTICS = {"Mean", "InvStdDev"}
DROPOUT = {"dropout_rate": 0.4, "seed": (3, 1, 4)}


def normal(rng, shape):
    return rng.standard_normal(shape)


def positive(rng, shape):
    return rng.uniform(0.5, 2.0, shape)


def away_from_zero(rng, shape):
    return rng.uniform(0.2, 1.5, shape) * rng.choice([-1, 1], shape)


def distribution(rng, shape):
    """Columns that sum to 1."""
    x = rng.uniform(0.2, 1.0, shape)
    return x / x.sum(axis=0)


def one_hot(rng, shape):
    x = np.zeros(shape)
    x[rng.integers(0, shape[0], shape[1]), np.arange(shape[1])] = 1
    return x


def soft_logistic(x):
    return 1 / (1 + np.exp(-x))


def soft_max(x):
    return np.exp(x) / np.exp(x).sum(axis=0)


def tiled(x, shape):
    """x repeated to a shape, as book 2.4.3 says for Plus."""
    return np.tile(x, (shape[0] // x.shape[0], shape[1] // x.shape[1]))


def broadcast(operation):
    def value(x, y):
        shape = max(x.shape[0], y.shape[0]), max(x.shape[1], y.shape[1])
        return operation(tiled(x, shape), tiled(y, shape))

    return value


@dataclass(frozen=True)
class Example:
    """A node type with operands of given shapes, how they are filled, and what the value must be."""

    type_name: str
    shapes: tuple[tuple[int, int], ...]
    value: Callable | None  # of the operands; None: checked elsewhere
    fill: tuple[Callable, ...] = ()
    fixed: tuple[int, ...] = ()  # operands without gradient
    settings: dict = field(default_factory=dict)  # of Engine.forward

    def __str__(self) -> str:
        return f"{self.type_name}-{'-'.join(f'{r}x{c}' for r, c in self.shapes)}"

    def operands(self, rng):
        fills = self.fill or (normal,) * len(self.shapes)
        return [np.asfortranarray(fill(rng, shape)) for fill, shape in zip(fills, self.shapes)]


def elementwise(name, value, fill=normal, **more):
    return [Example(name, (shape,), value, (fill,), **more) for shape in ((3, 5), (4, 1), (1, 6), (1, 1))]


def sums(name, operation):
    pairs = "3x5+3x5 3x5+3x1 3x1+3x5 1x5+3x5 3x5+1x1 1x1+3x5 3x6+3x2 3x2+3x6 1x2+3x6 3x1+1x5 3x1+3x1 1x1+1x1".split()
    pairs = [tuple(tuple(map(int, shape.split("x"))) for shape in pair.split("+")) for pair in pairs]
    return [Example(name, pair, broadcast(operation)) for pair in pairs]


def criteria(name, value, fills, **more):
    return [Example(name, (shape, shape), value, fills, **more) for shape in ((4, 6), (3, 1), (1, 5))]


def cross_entropy(labels, p):
    return -(labels * np.log(p)).sum().reshape(1, 1)


def normalisation(shape):
    fills = (normal, normal, positive)
    shapes = (shape, (shape[0], 1), (shape[0], 1))
    return Example("PerDimMeanVarNormalization", shapes, lambda x, m, s: (x - m) * s, fills, fixed=(1, 2))


EXAMPLES = [
    *elementwise("Negate", lambda x: -x),
    *elementwise("Sigmoid", soft_logistic),
    *elementwise("Tanh", np.tanh),
    *elementwise("RectifiedLinear", lambda x: np.maximum(x, 0), away_from_zero),
    *elementwise("Log", np.log, positive),
    *elementwise("Exp", np.exp),
    *elementwise("Softmax", soft_max),
    *elementwise("LogSoftmax", lambda x: np.log(soft_max(x))),
    *elementwise("Dropout", None, settings=DROPOUT),
    *elementwise("Dropout", lambda x: x),
    *elementwise("SumElements", lambda x: x.sum().reshape(1, 1)),
    *[
        Example("Times", shapes, lambda a, b: a @ b)
        for shapes in (((3, 4), (4, 5)), ((3, 4), (4, 1)), ((1, 4), (4, 1)), ((3, 1), (1, 5)), ((1, 1), (1, 1)))
    ],
    *[Example("ElementTimes", (shape, shape), lambda x, y: x * y) for shape in ((3, 5), (1, 4), (4, 1))],
    *[Example("Scale", ((1, 1), shape), lambda s, y: s * y) for shape in ((3, 5), (4, 1), (1, 1))],
    *sums("Plus", np.add),
    *sums("Minus", np.subtract),
    *criteria("SquareError", lambda x, y: ((x - y) ** 2).sum().reshape(1, 1) / 2, (normal, normal)),
    *criteria("CrossEntropy", cross_entropy, (distribution, distribution)),
    *criteria("CrossEntropyWithSoftmax", lambda l, z: cross_entropy(l, soft_max(z)), (one_hot, normal)),
    *criteria("CrossEntropyWithSoftmax", lambda l, z: cross_entropy(l, soft_max(z)), (positive, normal)),
    *[normalisation(shape) for shape in ((3, 5), (4, 1), (1, 1))],
]
# Operand shapes that a type must refuse; None stands for a column per frame.
BAD_SHAPES = {
    "Times": [((3, 4), (5, 2)), ((3, None), (3, 4))],
    "ElementTimes": [((3, 4), (3, 5)), ((3, 4), (2, 4)), ((2, None), (3, 4))],
    "Scale": [((2, 1), (3, 4)), ((1, None), (3, None))],
    "Plus": [((3, 4), (2, 4)), ((3, 4), (3, 3)), ((2, 1), (3, None))],
    "Minus": [((3, 4), (2, 4)), ((3, 4), (3, 3)), ((2, 1), (3, None))],
    "SquareError": [((3, 4), (3, 5)), ((3, None), (2, None))],
    "CrossEntropy": [((3, 4), (3, 5)), ((3, None), (2, None))],
    "CrossEntropyWithSoftmax": [((3, 4), (3, 5)), ((3, None), (2, None))],
    "ErrorPrediction": [((3, 4), (3, 5)), ((3, None), (2, None))],
    "PerDimMeanVarNormalization": [((3, None), (3, 2), (3, 1)), ((3, None), (3, 1), (2, 1))],
}
ANY_SHAPE = {"Negate", "Sigmoid", "Tanh", "RectifiedLinear", "Log", "Exp", "Softmax", "LogSoftmax", "Dropout"}
ANY_SHAPE |= {"SumElements", *STATISTICS}

every_example = pytest.mark.parametrize("example", EXAMPLES, ids=str)


def build(example, operands, shared=False):
    """(network in double precision with the node "v" over parameters, name of a scalar criterion on top of it)."""
    network = Network("double", threads=1)
    nodes = []
    for k, operand in enumerate(operands):
        rows, cols = operand.shape
        name = "a" if shared else f"operand{k}"
        if not shared or not nodes:
            network.add("Parameter", name, rows=rows, cols=cols, needGradient=k not in example.fixed)
            network.set_value(name, operand)
        nodes.append(name)
    node = network.add(example.type_name, "v", *nodes)
    shape = network.shapes["v"]
    if shape == Shape(1, 1):
        return network, node.name
    # J = the sum of V times random weights: another gradient for every element of V.
    network.add("Constant", "weights", value=0, rows=shape.rows, cols=shape.cols)
    network.set_value("weights", np.random.default_rng(99).standard_normal(tuple(shape)))
    network.add("ElementTimes", "weighted", "v", "weights")
    return network, network.add("SumElements", "J", "weighted").name


def test_every_registered_node_has_an_example():
    tested = {example.type_name for example in EXAMPLES} | LEAVES | STATISTICS | {"ErrorPrediction"}
    assert {node.type_name for node in registered_nodes()} == tested
    assert set(BAD_SHAPES) | ANY_SHAPE | LEAVES == tested


@pytest.mark.parametrize("node", list(registered_nodes()), ids=lambda node: node.type_name)
def test_declarations(node):
    assert inspect.getdoc(node)
    assert len(node.backward_reads) <= len(node.operand_names)
    for reads in filter(None, node.backward_reads):
        assert all(read in (VALUE, WORK) or 0 <= read < len(node.operand_names) for read in reads)
    for name in (node.type_name, *node.aliases):
        assert node_class(name) is node_class(name.upper()) is node_class(name.lower()) is node


@every_example
def test_value_shape_and_layout(example):
    operands = example.operands(np.random.default_rng(1))
    network, _ = build(example, operands)
    engine = Engine(network, ["v"])
    engine.forward()
    value = engine.value("v")
    assert value.shape == tuple(network.shapes["v"])
    assert value.dtype == np.float64
    assert value.flags.f_contiguous
    if example.value is not None:
        np.testing.assert_allclose(value, example.value(*operands), rtol=1e-12, atol=1e-12)


@every_example
@pytest.mark.parametrize("seed", [0, 1])
def test_gradient(example, seed):
    network, criterion = build(example, example.operands(np.random.default_rng(seed)))
    comparisons = check_gradients(network, criterion, {}, rng=np.random.default_rng(seed), **example.settings)
    assert len(comparisons) == len(example.shapes) - len(example.fixed)
    for comparison in comparisons:
        assert comparison.error < TOLERANCE, comparison


TAKE_EQUALS = [e for e in EXAMPLES if len(e.shapes) > 1 and len(set(e.shapes)) == 1 and len(set(e.fill)) <= 1]


@pytest.mark.parametrize("example", TAKE_EQUALS, ids=str)
def test_gradient_of_an_operand_used_twice(example):
    operands = example.operands(np.random.default_rng(2))
    network, criterion = build(example, operands, shared=True)
    (comparison,) = check_gradients(network, criterion, {}, **example.settings)
    assert comparison.error < TOLERANCE, comparison


@every_example
def test_backward_adds(example):
    """Non-empty buffers receive what empty ones do, although whatever `backward` does not declare to read is gone."""
    rng = np.random.default_rng(3)
    operands = example.operands(rng)
    network, _ = build(example, operands)
    node = network["v"]
    run = Run(network.backend, True, example.settings.get("dropout_rate", 0.0), (1,))
    value = np.empty(tuple(network.shapes["v"]), order="F")
    work_shape = node.work_shape(*(Shape(*operand.shape) for operand in operands))
    work = {} if work_shape is None else {"work": np.empty(tuple(work_shape), order="F")}
    node.forward(run, *operands, out=value, **work)
    grad = np.asfortranarray(rng.standard_normal(value.shape))
    wanted = [k for k in range(len(operands)) if node.has_gradient(k)]
    reads = {read for k in wanted for read in node.backward_reads[k]}
    inputs = [operand if k in reads else None for k, operand in enumerate(operands)]
    before = [np.asfortranarray(rng.standard_normal(operand.shape)) for operand in operands]
    results = []
    for fresh in (True, False):
        targets = [np.array(b, order="F") if k in wanted else None for k, b in enumerate(before)]
        into = Into(network.backend, targets, [fresh] * len(targets))
        node.backward(run, grad.copy(order="F"), inputs, value if VALUE in reads else None, into, **work)
        results.append(targets)
    for k in wanted:
        np.testing.assert_allclose(results[1][k], before[k] + results[0][k], rtol=1e-12, atol=1e-12)


@every_example
def test_value_may_overwrite_the_operands_it_names(example):
    operands = example.operands(np.random.default_rng(4))
    network, _ = build(example, operands)
    node, run = network["v"], Run(network.backend, True, example.settings.get("dropout_rate", 0.0))
    separate = np.empty(tuple(network.shapes["v"]), order="F")
    work_shape = node.work_shape(*(Shape(*operand.shape) for operand in operands))
    work = {} if work_shape is None else {"work": np.empty(tuple(work_shape), order="F")}
    node.forward(run, *operands, out=separate, **work)
    for k in node.value_in_place:
        if operands[k].shape == separate.shape:
            copies = [operand.copy(order="F") for operand in operands]
            node.forward(run, *copies, out=copies[k], **work)
            np.testing.assert_array_equal(copies[k], separate)


@pytest.mark.parametrize("type_name", sorted(BAD_SHAPES))
def test_bad_shapes_are_refused(type_name):
    for shapes in BAD_SHAPES[type_name]:
        network = Network("double", threads=1)
        names = []
        for k, (rows, cols) in enumerate(shapes):
            names.append(f"operand{k}")
            if cols is None:
                network.add("InputValue", names[-1], rows=rows)
            else:
                network.add("Parameter", names[-1], rows=rows, cols=cols)
        first = re.escape(str(Shape(*shapes[0])))
        with pytest.raises(ShapeError, match=rf"node 'bad' \({type_name}\): \S+ is {first}.*; expected"):
            network.add(type_name, "bad", *names)
        assert "bad" not in network.nodes


def test_message_of_a_bad_product():
    network = Network(threads=1)
    network.add("Parameter", "W", rows=512, cols=440)
    network.add("Input", "x", rows=429)
    expected = r"node 'h2.W\*x' \(Times\): A is 512x440, B is 429x\*; expected columns of A = rows of B"
    with pytest.raises(ShapeError, match=expected):
        network.add("Times", "h2.W*x", "W", "x")


@pytest.mark.parametrize("type_name", sorted({example.type_name for example in EXAMPLES}))
def test_wrong_number_of_operands(type_name):
    network = Network(threads=1)
    network.add("Parameter", "p", rows=1)
    count = len(node_class(type_name).operand_names)
    with pytest.raises(ModelError, match=rf"node 'v' \({type_name}\): {count + 1} operands; expected {count} \("):
        network.add(type_name, "v", *["p"] * (count + 1))


def test_log_has_a_floor():
    network = Network("double", threads=1)
    network.add("Parameter", "x", rows=3)
    network.set_value("x", np.array([[1e-38], [0.0], [1e-30]]))
    network.add("Log", "y", "x")
    network.add("SumElements", "J", "y")
    engine = Engine(network, ["y", "J"])
    engine.forward(training=True)
    np.testing.assert_allclose(engine.value("y")[:, 0], [-85.1, -85.1, np.log(1e-30)])
    engine.backward("J")
    np.testing.assert_allclose(engine.gradient("x")[:, 0], [0, 0, 1e30])


def test_error_prediction_counts_columns_and_has_no_gradient():
    network = Network("double", threads=1)
    for name in ("labels", "z"):
        network.add("Parameter", name, rows=3, cols=4)
    network.set_value("labels", np.array([[1, 0, 0, 1.0], [0, 1, 0, 0], [0, 0, 1, 0]]))
    network.set_value("z", np.array([[9, 5, 0, 7.0], [1, 5, 1, 7], [2, 2, 3, 7]]))  # equal ones: the first counts
    network.add("ErrorPrediction", "errors", "labels", "z")
    engine = Engine(network, ["errors"])
    engine.forward()
    assert engine.value("errors")[0, 0] == 1
    with pytest.raises(ModelError, match="no gradient with respect to 'labels'; expected a differentiable node"):
        engine.forward(training=True, criterion="errors")


@pytest.mark.parametrize("seed", [0, 1])
def test_dropout_drops_at_the_rate_and_keeps_the_mean(seed):
    network = Network("double", threads=1)
    network.add("Parameter", "x", rows=200, cols=500, init="fixedValue", value=1)
    network.add("Dropout", "y", "x")
    network.add("SumElements", "J", "y")
    engine = Engine(network, ["y", "J"])
    engine.forward(training=True, dropout_rate=0.3, seed=seed)
    value = engine.value("y")
    assert set(np.unique(value)) == {0.0, 1 / 0.7}
    assert abs((value == 0).mean() - 0.3) < 0.006  # four standard deviations
    assert abs(np.corrcoef(value[:, :-1].ravel(), value[:, 1:].ravel())[0, 1]) < 0.013
    assert abs(np.corrcoef(value[:-1].ravel(), value[1:].ravel())[0, 1]) < 0.013


def test_dropout_masks_follow_seed_and_node():
    network = Network("double", threads=1)
    network.add("Parameter", "x", rows=20, cols=20, init="fixedValue", value=1)
    network.add("Dropout", "y", "x")
    network.add("Dropout", "z", "x")
    network.add("SumElements", "J", "y")
    engine = Engine(network, ["y", "z", "J"])

    def mask(seed, rate=0.5, training=True):
        engine.forward(training=training, dropout_rate=rate, seed=seed)
        return engine.value("y").copy(), engine.value("z").copy()

    first = mask((1, 0, 0))
    assert (first[0] != first[1]).any()
    assert (mask((1, 0, 1))[0] != first[0]).any()
    assert (mask((1, 0, 0))[0] == first[0]).all()
    assert (mask((1, 0, 0), training=False)[0] == 1).all()
    assert (mask((1, 0, 0), rate=0.0)[0] == 1).all()


@pytest.mark.parametrize(("type_name", "expected"), [("Mean", [2.5, 4.0]), ("InvStdDev", [1 / np.sqrt(1.25), 1e5])])
def test_statistics_by_hand(type_name, expected):
    """Rows 1 2 3 4 and 4 4 4 4 in two parts; the second row's variance is 0, so its floor counts."""
    from acoustic.training.precompute import precompute

    network = Network("double", threads=1)
    network.add("Input", "x", rows=2)
    network.add(type_name, "s", "x")
    assert network.shapes["s"] == Shape(2, 1)
    parts = [np.array([[1.0, 2, 3], [4, 4, 4]]), np.array([[4.0], [4]])]
    assert precompute(network, lambda: ({"x": np.asfortranarray(part)} for part in parts)) == ["s"]
    np.testing.assert_allclose(network["s"].value[:, 0], expected)


class TestTheCheckItself:
    """A gradient that is wrong by a little must be caught."""

    def sigmoid_network(self):
        network = Network("double", threads=1)
        network.add("Parameter", "x", rows=3, cols=4, initValueScale=20)
        network.add("Sigmoid", "y", "x")
        network.add("SumElements", "J", "y")
        return network

    def test_a_gradient_half_a_thousandth_too_large_is_caught(self, monkeypatch):
        network = self.sigmoid_network()
        assert max(c.error for c in check_gradients(network, "J", {})) < TOLERANCE
        right = network["y"].backward

        def wrong(run, grad, inputs, value, into):
            right(run, grad * 1.0005, inputs, value, into)

        monkeypatch.setattr(network["y"], "backward", wrong)
        assert max(c.error for c in check_gradients(network, "J", {})) > TOLERANCE

    def test_one_wrong_element_is_caught(self, monkeypatch):
        network = self.sigmoid_network()
        right = network["y"].backward

        def wrong(run, grad, inputs, value, into):
            right(run, grad, inputs, value, into)
            into.targets[0][2, 3] *= 1.01

        monkeypatch.setattr(network["y"], "backward", wrong)
        assert max(c.error for c in check_gradients(network, "J", {})) > TOLERANCE

    def test_numeric_gradient_by_hand(self):
        """J = sum of sigmoid(x): dJ/dx = y (1 - y)."""
        network = self.sigmoid_network()
        checker = GradientChecker(Engine(network, ["J"]), "J", {})
        y = 1 / (1 + np.exp(-network["x"].value))
        np.testing.assert_allclose(checker.numeric_gradient(network["x"]), y * (1 - y), atol=1e-8)

    def test_single_precision_is_refused(self):
        network = Network("float", threads=1)
        network.add("Parameter", "x", rows=1)
        network.add("SumElements", "J", "x")
        with pytest.raises(ModelError, match="expected precision=double"):
            check_gradients(network, "J", {})


@pytest.mark.gpu
def test_cupy_gives_what_numpy_gives():
    pytest.importorskip("cupy")
    for example in EXAMPLES:
        operands = example.operands(np.random.default_rng(5))
        compare_devices(example, operands)


def compare_devices(example, operands):
    results = []
    for device in ("cpu", "gpu"):
        network = Network("double", device=device, threads=1)
        for k, operand in enumerate(operands):
            network.add("Parameter", f"operand{k}", rows=operand.shape[0], cols=operand.shape[1])
            network.set_value(f"operand{k}", operand)
        network.add(example.type_name, "v", *[f"operand{k}" for k in range(len(operands))])
        engine = Engine(network, ["v"])
        engine.forward()
        results.append(network.backend.to_host(engine.value("v")))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12, atol=1e-12)
