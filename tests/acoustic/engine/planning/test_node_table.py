"""The table of node types: what is listed as calls of kernels, and what a derived type has of its base."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.planning.node_table import NOTHING, TABLE, Traits, calls_kernels, traits
from acoustic.network.network import Network
from acoustic.nodes.elementwise import ElementwiseNode, Sigmoid
from acoustic.nodes.registry import registered_nodes
from acoustic.nodes.softmax import Hardmax, Softmax
from acoustic.runtime.engine_options import EngineOptions

LISTED = ["Sigmoid", "Tanh", "RectifiedLinear", "RMSNormalization", "Log", "PNorm", "Plus", "Times"]


def network(type_name):
    """x -> f(W x + b) for an f, or a sum or product of what is there."""
    net = Network(seed=2, threads=2)
    net.add("Input", "x", rows=3)
    net.add("Input", "y", rows=4)
    net.add("Parameter", "W", rows=4, cols=3, initValueScale=5)
    net.add("Parameter", "V", rows=4, cols=4, initValueScale=5)
    net.add("Parameter", "b", rows=4)
    net.add("Plus", "z", net.add("Times", "Wx", "W", "x"), "b")
    operands, options = ["z"], {}
    if type_name == "PNorm":
        operands, options = [net.add("Times", "Vz", "V", "z")], {"groupSize": 1}
    elif type_name in ("Plus", "Times"):
        operands = ["V", "z"] if type_name == "Times" else ["z", "Wx"]
    net.add("CrossEntropyWithSoftmax", "ce", "y", net.add(type_name, "f", *operands, **options))
    return net


def trained(type_name, options, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    net = network(type_name)
    engine, rng = Engine(net, ["ce"], options=options), np.random.default_rng(0)
    for _ in range(3):
        matrices = {name: np.asfortranarray(rng.random((rows, 70), np.float32)) for name, rows in (("x", 3), ("y", 4))}
        engine.forward(matrices, training=True)
        engine.backward()
    return engine, [float(engine.value("ce")[0, 0]), *(engine.gradient(name) for name in "Wb")]


@pytest.mark.parametrize("type_name", LISTED)
def test_calls_of_kernels_give_what_the_node_gives(type_name, monkeypatch):
    engine, values = trained(type_name, EngineOptions(), monkeypatch)
    _, expected = trained(type_name, EngineOptions.plain(), monkeypatch)
    for value, right in zip(values, expected):
        np.testing.assert_allclose(value, right, rtol=2e-4, atol=2e-5)
    node = engine.network["f"]
    is_listed = calls_kernels(node, [engine.network.shapes[one.name] for one in node.operands], (), False)
    assert is_listed == (type_name != "Log")


def test_a_derived_type_has_the_entry_of_its_base_but_is_not_listed():
    class Squashed(Sigmoid):
        def forward(self, context, x, *, out):
            context.xp.tanh(x, out=out)

    net = network("Sigmoid")
    node = Squashed("s", [net["z"]])
    assert traits(node) == TABLE[Sigmoid]
    assert not calls_kernels(node, [net.shapes["z"]], (), False)
    assert calls_kernels(net["f"], [net.shapes["z"]], (), False)
    assert not calls_kernels(net["ce"], [net.shapes["y"]] * 2, {"y"}, False)


def test_entries_of_bases_and_of_types_without_one():
    net = network("Sigmoid")
    assert traits(Softmax("s", [net["z"]])) == TABLE[ElementwiseNode] == Traits((0,), (0,))
    assert traits(Hardmax("h", [net["z"]])).gradient_in_place == ()
    assert traits(net["x"]) is NOTHING


def test_operands_of_the_table_are_those_of_the_types():
    kinds = set(registered_nodes())
    for kind, entry in TABLE.items():
        for each in kinds & {*kind.__subclasses__(), kind}:
            count = len(each.operand_names)
            numbers = (*entry.value_in_place, *entry.frame_products, *entry.takes_indicators, *entry.touches_columns)
            assert all(k < count for k in numbers)
            assert entry.layer_inputs.keys() <= set(entry.frame_products)
            assert all(len(each.backward_reads) > k for k in entry.frame_products)
