"""Forward mode against reverse mode: <u, J t> = <J' u, t>, on every node type and on whole networks."""

from itertools import pairwise

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.forward_mode import jacobian_vector_product
from acoustic.network.network import Network
from readers.errors import ModelError, ShapeError
from tests.acoustic.nodes.examples.base import FRAMES, build, build_with_frames
from tests.acoustic.nodes.examples.every_node import EXAMPLES

TOLERANCE = 1e-10  # relative: both are exact but for rounding


def slopes(network, criterion, matrices, draw, **settings):
    """The criterion's derivative along random directions of its parameters: forward mode, reverse mode."""
    engine = Engine(network, [criterion])
    engine.forward(matrices, training=True, **settings)
    value = engine.value(criterion)[0, 0]
    engine.backward()
    rng = np.random.default_rng(draw)
    learn = [node for node in engine.graph.order if node.needs_gradient]
    directions = {node.name: np.asfortranarray(rng.standard_normal(node.value.shape)) for node in learn}
    dual = jacobian_vector_product(network, [criterion], matrices, directions, **settings)[criterion]
    assert dual.value[0, 0] == pytest.approx(value, rel=1e-12)
    terms = [float(np.vdot(engine.gradient(name), direction)) for name, direction in directions.items()]
    return dual.tangent[0, 0], sum(terms), sum(map(abs, terms))


def assert_modes_agree(network, criterion, matrices, draw=0, **settings):
    forward, reverse, size = slopes(network, criterion, matrices, draw, **settings)
    assert abs(forward - reverse) <= TOLERANCE * max(1, size), (forward, reverse)


every_differentiable = pytest.mark.parametrize("example", [e for e in EXAMPLES if e.differentiable], ids=str)


@every_differentiable
def test_node(example):
    network, criterion = build(example, example.operands(np.random.default_rng(10)))
    assert_modes_agree(network, criterion, {}, **example.settings)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.differentiable and e.frames], ids=str)
def test_node_on_frames(example):
    operands = example.operands(np.random.default_rng(11), FRAMES)
    network, matrices, criterion = build_with_frames(example, operands)
    assert_modes_agree(network, criterion, matrices, **example.settings)


@every_differentiable
def test_derivative_of_one_operand_at_a_time(example):
    """The derivative is linear in the direction: those of single operands add up to that of all."""
    rng = np.random.default_rng(12)
    operands = example.operands(rng)
    network, _ = build(example, operands)
    names = [f"operand{k}" for k in range(len(operands)) if k not in example.fixed]
    directions = {name: np.asfortranarray(rng.standard_normal(network[name].value.shape)) for name in names}

    def along(chosen):
        return jacobian_vector_product(network, ["v"], {}, chosen, **example.settings)["v"].tangent

    parts = sum(along({name: direction}) for name, direction in directions.items())
    np.testing.assert_allclose(along(directions), parts, rtol=1e-9, atol=1e-11)


def deep_network(kind, normaliser="LayerNormalization"):
    """Normalised input, two hidden layers with a normalisation, dropout and a residual sum; cross-entropy, penalty."""
    network = Network("double", threads=1, seed=4)
    network.add("Input", "x", rows=6)
    network.add("Input", "labels", rows=5)
    network.add("Mean", "mean", "x")
    network.add("InvStdDev", "inverse", "x")
    for name in ("mean", "inverse"):
        network.set_value(name, np.random.default_rng(len(name)).uniform(0.5, 1, (6, 1)))
    network.add("PerDimMVNorm", "h0", "x", "mean", "inverse")
    sizes = [6, 8, 8, 5]
    for layer, (cols, rows) in enumerate(pairwise(sizes)):
        network.add("Parameter", f"W{layer}", rows=rows, cols=cols, init="gaussian", initValueScale=4)
        network.add("Parameter", f"b{layer}", rows=rows, init="gaussian", initValueScale=2)
        top = network.add("Plus", f"z{layer}", network.add("Times", f"t{layer}", f"W{layer}", f"h{layer}"), f"b{layer}")
        if layer == 2:
            break
        if normaliser == "LayerNormalization":
            for name in ("scale", "bias"):
                network.add("Parameter", f"{name}{layer}", rows=rows, init="gaussian", initValueScale=4)
            top = network.add(normaliser, f"n{layer}", top, f"scale{layer}", f"bias{layer}")
        else:
            top = network.add(normaliser, f"n{layer}", top)
        top = network.add("Dropout", f"d{layer}", network.add(kind, f"a{layer}", top))
        if layer == 1:
            top = network.add("Plus", "residual", top, "h1")
        network.add("RowSlice", f"h{layer + 1}", top, startRow=0, numRows=8)
    network.add("CrossEntropyWithSoftmax", "ce", "labels", "z2")
    network.add("Constant", "weight", value=0.01)
    network.add("Plus", "J", "ce", network.add("Scale", "penalty", "weight", network.add("L2Reg", "norm", "W1")))
    return network


def deep_data(num_frames=40):
    rng = np.random.default_rng(num_frames)
    labels = np.zeros((5, num_frames), order="F")
    labels[rng.integers(0, 5, num_frames), np.arange(num_frames)] = 1
    return {"x": np.asfortranarray(rng.standard_normal((6, num_frames))), "labels": labels}


@pytest.mark.parametrize("kind", ["Sigmoid", "Tanh", "RectifiedLinear"])
@pytest.mark.parametrize("normaliser", ["LayerNormalization", "RMSNormalization"])
def test_whole_network(kind, normaliser):
    network = deep_network(kind, normaliser)
    for draw in range(3):
        assert_modes_agree(network, "J", deep_data(), draw, dropout_rate=0.3, seed=(draw, 5))


def test_a_wrong_gradient_is_caught(monkeypatch):
    network = deep_network("Sigmoid")
    right = network["n0"].backward

    def wrong(run, grad, inputs, value, into):
        right(run, grad * (1 + 1e-8), inputs, value, into)

    monkeypatch.setattr(network["n0"], "backward", wrong)
    with pytest.raises(AssertionError):
        assert_modes_agree(network, "J", deep_data(), dropout_rate=0.3)


def test_derivative_by_the_table_of_the_source():
    """f = ln x1 + x1 x2 - sin x2 at (2, 5): df/dx1 = 5.5 and df/dx2 = 2 - cos 5, as in the source's section 2.1."""
    network = Network("double", threads=1)
    for name, value in (("x1", 2), ("x2", 5)):
        network.add("Parameter", name, rows=1, init="fixedValue", value=value)
    network.add("Plus", "sum", network.add("Log", "log", "x1"), network.add("ElementTimes", "product", "x1", "x2"))
    network.add("Minus", "y", "sum", network.add("Sin", "sine", "x2"))
    one = np.ones((1, 1))
    duals = [jacobian_vector_product(network, ["y"], {}, {name: one})["y"] for name in ("x1", "x2")]
    np.testing.assert_allclose([float(dual.tangent[0, 0]) for dual in duals], [5.5, 2 - np.cos(5)])
    assert float(duals[0].value[0, 0]) == pytest.approx(np.log(2) + 10 - np.sin(5))


def test_direction_of_an_input():
    """How the outputs of a softmax layer change with the features: W t times the softmax's Jacobian."""
    network = Network("double", threads=1)
    network.add("Input", "x", rows=3)
    network.add("Parameter", "W", rows=4, cols=3, initValueScale=20)
    network.add("Softmax", "p", network.add("Times", "z", "W", "x"))
    rng = np.random.default_rng(0)
    x, t = rng.standard_normal((2, 3, 1))
    dual = jacobian_vector_product(network, ["p"], {"x": x}, {"x": t})["p"]
    p = dual.value[:, 0]
    jacobian = np.diag(p) - np.outer(p, p)
    np.testing.assert_allclose(dual.tangent[:, 0], jacobian @ (network["W"].value @ t)[:, 0], rtol=1e-12)


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax"])
def test_derivatives_of_exponentials_do_not_depend_on_a_constant_that_cancels(name):
    """Values from -2000 to 2000, whose exponentials are 0 or infinite."""
    x = np.array([[2000.0, -2000.0, 3.0], [1999.0, -2001.5, 1e-3], [-2000.0, 2000.0, -2.0]])
    t = np.random.default_rng(0).standard_normal((3, 3))
    tangents = []
    for shifted in (x, x - x.max(axis=0)):
        network = Network("double", threads=1)
        network.add("Input", "x", rows=3)
        network.add(name, "y", "x")
        tangents.append(jacobian_vector_product(network, ["y"], {"x": shifted}, {"x": t})["y"].tangent)
    assert np.isfinite(tangents[0]).all()
    np.testing.assert_allclose(tangents[0], tangents[1], rtol=1e-12)


def test_a_mixture_whose_priors_differ_by_a_constant_has_the_same_derivatives():
    """ln of the components' weights: only their differences count, however large they are."""
    rng = np.random.default_rng(0)
    prior, means, spread, x = (rng.standard_normal(shape) for shape in ((2, 1), (6, 1), (2, 1), (3, 4)))
    tangents = []
    for shift in (0.0, 1500.0, -1500.0):
        network = Network("double", threads=1)
        for name, values in (("prior", prior + shift), ("means", means), ("spread", spread)):
            network.add("Parameter", name, rows=len(values), cols=1)
            network[name].assign(np.asfortranarray(values))
        network.add("Input", "x", rows=3)
        network.add("GMMLogLikelihood", "y", "prior", "means", "spread", "x")
        direction = {"prior": np.ones((2, 1)) * [[1.0], [-2.0]], "means": np.ones((6, 1))}
        tangents.append(jacobian_vector_product(network, ["y"], {"x": x}, direction)["y"].tangent)
    np.testing.assert_allclose(tangents[1:], [tangents[0]] * 2, rtol=1e-9)


def test_faults():
    network = Network("double", threads=1)
    network.add("Input", "x", rows=2)
    network.add("Parameter", "w", rows=2)
    network.add("ErrorPrediction", "errors", "x", network.add("Plus", "y", "x", "w"))
    x, w = np.ones((2, 3)), np.ones((2, 1))
    with pytest.raises(ModelError, match=r"node 'errors' \(ErrorPrediction\): has no derivative with respect to 'y'"):
        jacobian_vector_product(network, ["errors"], {"x": x}, {"w": w})
    with pytest.raises(ModelError, match="direction of 'y'; expected a leaf below errors"):
        jacobian_vector_product(network, ["errors"], {"x": x}, {"y": w})
    with pytest.raises(ModelError, match=r"node 'x' \(InputValue\): has no value"):
        jacobian_vector_product(network, ["y"], {}, {"w": w})
    with pytest.raises(ShapeError, match=r"node 'w' \(LearnableParameter\): direction is 2x3; expected 2x1"):
        jacobian_vector_product(network, ["y"], {"x": x}, {"w": x})
