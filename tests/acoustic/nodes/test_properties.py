"""Properties of node types: each holds for every type that declares or inherits it, and takes the place of its name."""

import re
from pathlib import Path

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.nodes import properties
from acoustic.nodes.base import REGISTRY
from acoustic.nodes.registry import registered_nodes

ACOUSTIC = Path(__file__).parents[3] / "acoustic"
FORMULAS = {
    properties.PRODUCT: np.matmul,
    properties.ELEMENT_PRODUCT: np.multiply,
    properties.SCALED: np.multiply,
    properties.SUM: np.add,
    properties.DIFFERENCE: np.subtract,
    properties.NEGATIVE: np.negative,
    properties.SIGMOID: lambda x: 1 / (1 + np.exp(-x)),
    properties.TANH: np.tanh,
    properties.RELU: lambda x: np.maximum(x, 0),
    properties.SOFTMAX: lambda x: np.exp(x) / np.exp(x).sum(axis=0),
    properties.LOG_SOFTMAX: lambda x: x - np.log(np.exp(x).sum(axis=0)),
    properties.DROPOUT: np.copy,
}
SHAPES = {"DiagTimes": [(3, 1), (3, 4)], "RowElementTimes": [(3, 4), (1, 4)], "ColumnElementTimes": [(3, 4), (3, 1)]}
SHAPES |= {"Times": [(3, 3), (3, 4)], "Scale": [(1, 1), (3, 4)]}
DECLARED = [(kind, name) for kind in registered_nodes() for name in sorted(kind.properties & FORMULAS.keys())]


@pytest.mark.parametrize(("kind", "name"), DECLARED, ids=[f"{kind.type_name}-{name}" for kind, name in DECLARED])
def test_a_property_tells_the_value(kind, name):
    rng = np.random.default_rng(0)
    network = Network("double")
    operands = []
    for k, (rows, cols) in enumerate(SHAPES.get(kind.type_name, [(3, 4)] * len(kind.operand_names))):
        operands.append(np.asfortranarray(rng.standard_normal((rows, cols))))
        network.add("LearnableParameter", f"p{k}", rows=rows, cols=cols)
        network[f"p{k}"].value = operands[-1]
    network.add(kind.type_name, "V", *(f"p{k}" for k in range(len(operands))))
    engine = Engine(network, ["V"])
    engine.forward({})
    assert engine.value("V") == pytest.approx(FORMULAS[name](*operands))


def test_every_formula_is_that_of_a_type():
    assert {name for _, name in DECLARED} == FORMULAS.keys()


def test_no_code_compares_the_name_of_a_type_with_a_word():
    names = {kind.type_name for kind in REGISTRY.values()}
    compared = re.compile(r"type_name (?:==|!=|in|not in) \(?\"?(\w+)")
    for path in ACOUSTIC.rglob("*.py"):
        for word in compared.findall(path.read_text("utf-8")):
            assert word not in names, path
            assert not word.isupper(), path
