"""One battery over every registered node type: shapes, layout, gradients, accumulation, faults.

A node type without an example here fails `test_every_registered_node_has_an_example`.  Gradients are compared with the
definition (book eq. 2.5) in double precision; values with formulas written out again below.
"""

import inspect
import re

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients
from acoustic.engine.planning.node_table import traits
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from acoustic.nodes.base import VALUE, WORK, Node, PassContext, Shape
from acoustic.nodes.gradient_targets import GradientTargets
from acoustic.nodes.option import REQUIRED
from acoustic.nodes.properties import DELAY, SOCKET
from acoustic.nodes.registry import node_class, registered_nodes
from acoustic.nodes.sequence_criterion import SupervisedCriterion
from acoustic.runtime.engine_options import EngineOptions
from readers.errors import ModelError, ShapeError
from tests.acoustic.nodes.examples.base import FRAMES, build, build_with_frames
from tests.acoustic.nodes.examples.every_node import ANY_SHAPE, BAD_SHAPES, EXAMPLES

TOLERANCE = 1e-6
STATISTICS = {"Mean", "InvStdDev"}
WITHOUT_FRAMES = {"Transpose"}

every_example = pytest.mark.parametrize("example", EXAMPLES, ids=str)


differentiable = pytest.mark.parametrize("example", [e for e in EXAMPLES if e.differentiable], ids=str)
with_frames = pytest.mark.parametrize("example", [e for e in EXAMPLES if e.frames], ids=str)
every_type = pytest.mark.parametrize("node", list(registered_nodes()), ids=lambda node: node.type_name)


def computed_types():
    """The registered types that are computed in a pass, without those that need sequences or supervisions.

    See test_loop_node.py, test_time_reverse.py, test_pair_engine.py and test_sequence_criterion.py.
    """
    return {
        node.type_name
        for node in registered_nodes()
        if not (
            node.is_input
            or node.is_stored
            or node.along_sequences
            or node.properties & {DELAY, SOCKET}
            or issubclass(node, SupervisedCriterion)
        )
    }


def test_every_registered_node_has_an_example():
    assert {example.type_name for example in EXAMPLES} == computed_types()
    assert {example.type_name for example in EXAMPLES if example.frames} == computed_types() - WITHOUT_FRAMES
    assert {name for name, _, _ in BAD_SHAPES} | ANY_SHAPE == computed_types()


@every_type
def test_declarations(node):
    assert inspect.getdoc(node)
    assert len(node.backward_reads) <= len(node.operand_names)
    for reads in filter(None, node.backward_reads):
        assert all(read in (VALUE, WORK) or 0 <= read < len(node.operand_names) for read in reads)
    for name in (node.type_name, *node.aliases):
        assert node_class(name) is node_class(name.upper()) is node_class(name.lower()) is node


@every_type
def test_what_can_be_differentiated_has_a_derivative(node):
    has_gradient = any(reads is not None for reads in node.backward_reads)
    assert not has_gradient or node.tangent is not Node.tangent


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


@differentiable
@pytest.mark.parametrize("seed", [0, 1])
def test_gradient(example, seed):
    network, criterion = build(example, example.operands(np.random.default_rng(seed)))
    comparisons = check_gradients(network, criterion, {}, rng=np.random.default_rng(seed), **example.settings)
    assert len(comparisons) == len(example.shapes) - len(example.fixed)
    for comparison in comparisons:
        assert comparison.error < TOLERANCE, comparison


TAKE_EQUALS = [
    e for e in EXAMPLES if e.differentiable and len(e.shapes) > 1 and len(set(e.shapes)) == 1 and len(set(e.fill)) <= 1
]


@pytest.mark.parametrize("example", TAKE_EQUALS, ids=str)
def test_gradient_of_an_operand_used_twice(example):
    operands = example.operands(np.random.default_rng(2))
    network, criterion = build(example, operands, shared=True)
    (comparison,) = check_gradients(network, criterion, {}, **example.settings)
    assert comparison.error < TOLERANCE, comparison


@differentiable
def test_backward_adds(example):
    """Non-empty buffers receive what empty ones do, one operand at a time what all together do.

    Whatever `backward` does not declare to read for them is gone.
    """
    rng = np.random.default_rng(3)
    operands = example.operands(rng)
    network, _ = build(example, operands)
    node = network["v"]
    context = PassContext(network.backend, True, example.settings.get("dropout_rate", 0.0), (1,))
    value = np.empty(tuple(network.shapes["v"]), order="F")
    work_shape = node.work_shape(*(network.shapes[operand.name] for operand in node.operands))
    work = {} if work_shape is None else {"work": np.empty(tuple(work_shape), order="F")}
    node.forward(context, *operands, out=value, **work)
    grad = np.asfortranarray(rng.standard_normal(value.shape))
    able = [k for k in range(len(operands)) if node.has_gradient(k)]
    before = [np.asfortranarray(rng.standard_normal(operand.shape)) for operand in operands]
    rows = [operand.shape[0] for operand in operands]
    alone = {}
    for wanted in (*[[k] for k in able], able):
        reads = {read for k in wanted for read in node.gradient_reads(k)}
        inputs = [operand if k in reads else None for k, operand in enumerate(operands)]
        kept = {name: matrix if WORK in reads else None for name, matrix in work.items()}
        results = []
        for fresh in (True, False):
            targets = [np.array(b, order="F") if k in wanted else None for k, b in enumerate(before)]
            into = GradientTargets(network.backend, targets, [fresh] * len(targets), rows=rows)
            node.backward(context, grad.copy(order="F"), inputs, value if VALUE in reads else None, into, **kept)
            results.append(targets)
        for k in wanted:
            np.testing.assert_allclose(results[1][k], before[k] + results[0][k], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(results[0][k], alone.setdefault(k, results[0][k]), rtol=1e-12, atol=1e-12)


@every_example
def test_value_may_overwrite_the_operands_it_names(example):
    operands = example.operands(np.random.default_rng(4))
    network, _ = build(example, operands)
    node, context = network["v"], PassContext(network.backend, True, example.settings.get("dropout_rate", 0.0))
    separate = np.empty(tuple(network.shapes["v"]), order="F")
    work_shape = node.work_shape(*(network.shapes[operand.name] for operand in node.operands))
    work = {} if work_shape is None else {"work": np.empty(tuple(work_shape), order="F")}
    node.forward(context, *operands, out=separate, **work)
    for k in traits(node).value_in_place:
        if operands[k].shape == separate.shape:
            copies = [operand.copy(order="F") for operand in operands]
            node.forward(context, *copies, out=copies[k], **work)
            np.testing.assert_array_equal(copies[k], separate)


@pytest.mark.slow
@with_frames
def test_frames_shared_out_among_threads_and_memory(example):
    """Three workers, each with memory that matrices share, do what one does without sharing any."""
    network, matrices, criterion = build_with_frames(
        example, example.operands(np.random.default_rng(6), FRAMES), threads=3
    )
    results = []
    for setting in ({"threads": 1, "options": EngineOptions.plain()}, {}):
        engine = Engine(network, ["v", criterion], **setting)
        assert engine.graph.splits_frames() != example.whole
        engine.forward(matrices, training=example.differentiable, **example.settings)
        results.append([engine.value("v").copy()])
        if example.differentiable:
            engine.backward(criterion)
            results[-1] += [engine.gradient(node.name).copy() for node in network.parameters() if node.needs_gradient]
    for one, three in zip(*results, strict=True):
        np.testing.assert_allclose(one, three, rtol=1e-9, atol=1e-11)


@with_frames
def test_frames_cut_anywhere_in_evaluation(example):
    """Where nothing combines frames, parts of a minibatch have the values of the whole."""
    operands = example.operands(np.random.default_rng(9), FRAMES)
    network, matrices, _ = build_with_frames(example, operands)
    engine = Engine(network, ["v"])
    engine.forward(matrices)
    whole = engine.value("v").copy()
    if (mixing := engine.graph.mixing_node()) is not None:
        assert mixing.name == "v"
        assert example.whole or network.shapes["v"] == Shape(1, 1)
        return
    parts = []
    for columns in (slice(0, 31), slice(31, FRAMES)):
        engine.forward({name: matrix[:, columns] for name, matrix in matrices.items()})
        parts.append(engine.value("v").copy())
    np.testing.assert_allclose(np.hstack(parts), whole, rtol=1e-12, atol=1e-13)


@with_frames
def test_values_in_single_precision(example):
    operands = example.operands(np.random.default_rng(7), FRAMES)
    network, matrices, _ = build_with_frames(example, operands, precision="float")
    engine = Engine(network, ["v"])
    engine.forward(matrices)
    value = engine.value("v")
    assert value.dtype == np.float32
    assert value.flags.f_contiguous
    if example.value is not None:
        np.testing.assert_allclose(value, example.value(*operands), rtol=2e-4, atol=2e-5)


@differentiable
def test_gradients_in_single_precision(example):
    gradients = []
    random = {"seed": 1, **example.settings}
    for precision in ("float", "double"):
        network, criterion = build(example, example.operands(np.random.default_rng(7)), precision=precision)
        engine, found = Engine(network, [criterion]), {}
        engine.forward(training=True, **random)
        engine.backward(criterion, lambda node, gradient, found=found: found.update({node.name: gradient.copy()}))
        gradients.append(found)
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[1].items():
        np.testing.assert_allclose(gradients[0][name], gradient, rtol=1e-3, atol=1e-4 * max(1, np.abs(gradient).max()))


@every_example
def test_saved_and_loaded(example, tmp_path):
    network, _ = build(example, example.operands(np.random.default_rng(8)))
    save_model(network, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded["v"].settings == network["v"].settings
    values = []
    for one in (network, loaded):
        engine = Engine(one, ["v"])
        engine.forward()
        values.append(engine.value("v"))
    np.testing.assert_array_equal(*values)


@pytest.mark.parametrize(("type_name", "shapes", "options"), BAD_SHAPES, ids=str)
def test_bad_shapes_are_refused(type_name, shapes, options):
    network = Network("double", threads=1)
    names = []
    for k, (rows, cols) in enumerate(shapes):
        names.append(f"operand{k}")
        if cols is None:
            network.add("InputValue", names[-1], rows=rows)
        else:
            network.add("Parameter", names[-1], rows=rows, cols=cols)
    first = re.escape(str(Shape(*shapes[0])))
    with pytest.raises(ShapeError, match=rf"node 'bad' \({type_name}\): \S+ 'operand0' is {first}.*; expected"):
        network.add(type_name, "bad", *names, **options)
    assert "bad" not in network.nodes


def test_message_of_a_bad_product():
    network = Network(threads=1)
    network.add("Parameter", "W", rows=512, cols=440)
    network.add("Input", "x", rows=429)
    expected = r"node 'h2.W\*x' \(Times\): A 'W' is 512x440, B 'x' is 429x\*; expected columns of A = rows of B"
    with pytest.raises(ShapeError, match=expected):
        network.add("Times", "h2.W*x", "W", "x")


def test_message_names_the_line_that_made_the_node():
    network = Network(threads=1)
    network.add("Parameter", "a", rows=2, cols=4)
    network.add("Parameter", "b", rows=3, cols=5)
    expected = (
        r"^net.ndl:12: node 's' \(RowStack\): X 'a' is 2x4, operand 2 'a' is 2x4, operand 3 'b' is 3x5; expected equal"
    )
    with pytest.raises(ShapeError, match=expected):
        network.add_node("RowStack", "s", ["a", "a", "b"], {}, origin="net.ndl:12")


def test_frames_that_cannot_be_reshaped_are_named_when_they_are_fed():
    """Two frames make a column of 12 rows; an odd number of frames does not fit."""
    network = Network("double", threads=1)
    network.add("Input", "x", rows=6)
    node = network.add_node("Reshape", "pairs", ["x"], {"numRows": 12}, origin="net.ndl:3")
    assert str(network.shapes["pairs"]) == "12x*/2"
    assert node.where == "net.ndl:3: node 'pairs' (Reshape)"
    engine = Engine(network, ["pairs"])
    engine.forward({"x": np.zeros((6, 4))})
    assert engine.value("pairs").shape == (12, 2)
    expected = (
        r"^net.ndl:3: node 'pairs' \(Reshape\): X 'x' is 6x5; expected a number of elements that is a multiple of"
    )
    with pytest.raises(ShapeError, match=expected):
        engine.forward({"x": np.zeros((6, 5))})


@every_type
def test_wrong_number_of_operands(node):
    network = Network(threads=1)
    network.add("Parameter", "p", rows=1)
    options = {option.name: 1 for option in node.options if option.default is REQUIRED}
    count = len(node.operand_names)
    given, expected = (count - 1, f"at least {count}") if node.variadic else (count + 1, f"{count}")
    with pytest.raises(ModelError, match=rf"node 'v' \({node.type_name}\): {given} operands; expected {expected} \("):
        network.add(node.type_name, "v", *["p"] * given, **options)
