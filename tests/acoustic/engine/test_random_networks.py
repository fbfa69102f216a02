"""Random networks of most node types: however they are executed, values and gradients are the same, and right."""

import contextlib

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import compare_with_forward_mode
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from acoustic.nodes.base import Shape
from acoustic.runtime.engine_options import EngineOptions
from readers.errors import ShapeError

FRAMES = 72
UNARY = "Sigmoid Tanh RectifiedLinear Negate Sin Cosine Abs Softmax LogSoftmax RMSNormalization Dropout Clip".split()
BINARY = "Plus Minus ElementTimes LogPlus CosDistance KhatriRaoProduct".split()
DROPOUT = {"dropout_rate": 0.25, "seed": (2, 7)}


class Maker:
    """Adds nodes over what is there, drawn by a generator."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.network = Network("double", threads=3, seed=seed)
        self.network.add("Input", "x", rows=6)
        self.pool = ["x"]
        self.count = 0

    def add(self, type_name: str, *operands: str, **options) -> str:
        self.count += 1
        name = self.network.add(type_name, f"n{self.count}.{type_name}", *operands, **options).name
        self.pool.append(name)
        return name

    def parameter(self, rows: int, cols: int = 1) -> str:
        self.count += 1
        options = {"init": "gaussian", "initValueScale": 3}
        return self.network.add("Parameter", f"n{self.count}.P", rows=rows, cols=cols, **options).name

    def shape(self, name: str) -> Shape:
        return self.network.shapes[name]

    def some(self) -> str:
        """A node, the later ones more often."""
        return self.pool[int(len(self.pool) * self.rng.uniform() ** 0.5)]

    def step(self) -> None:
        x = self.some()
        rows, cols = self.shape(x)
        kind = int(self.rng.choice(7, p=[0.2, 0.15, 0.1, 0.25, 0.08, 0.07, 0.15]))
        alike = [name for name in self.pool if self.shape(name).cols == cols]
        if kind <= 1:
            type_name = str(self.rng.choice(UNARY))
            self.add(type_name, x, **({"minValue": -0.5, "maxValue": 0.5} if type_name == "Clip" else {}))
        elif kind == 2:
            self.add("Plus", self.add("Times", self.parameter(int(self.rng.integers(1, 7)), rows), x), self.some())
        elif kind == 3:
            self.with_partner(x, [name for name in alike if self.shape(name).rows == rows])
        elif kind == 4:
            self.add("RowStack", x, *self.rng.choice(alike, size=self.rng.integers(0, 3)).tolist())
        elif kind == 5:
            self.add("LayerNormalization", x, self.parameter(rows), self.parameter(rows), epsilon=0.1)
        else:
            self.rearrange(x, rows)

    def with_partner(self, x: str, alike: list[str]) -> None:
        type_name, y = str(self.rng.choice(BINARY)), str(self.rng.choice(alike))
        if type_name != "KhatriRaoProduct" or self.shape(x).rows <= 4:
            self.add(type_name, x, y)

    def rearrange(self, x: str, rows: int) -> None:
        kind = self.rng.integers(0, 5)
        if kind == 0:
            self.add("RowSlice", x, startRow=rows // 3, numRows=max(1, rows // 2))
        elif kind == 1 and rows % 2 == 0:
            self.add(str(self.rng.choice(["Maxout", "PNorm"])), x, groupSize=2)
        elif kind == 2 and rows <= 6:
            self.add("RowRepeat", x, numRepeats=2)
        elif kind == 3:
            self.add("ColumnElementTimes", x, self.parameter(rows))
        elif rows % 3 == 0 and self.rng.uniform() < 0.5:
            self.add("Reshape", x, numRows=rows // 3)

    def finish(self) -> str:
        """J: sums over some of the last nodes, weighted, and a penalty."""
        total = self.add("L2Reg", self.parameter(2, 2))
        for x in self.rng.choice(self.pool[-12:-1], size=4):
            total = self.add("Plus", total, self.add("Scale", self.parameter(1), self.add("SumElements", str(x))))
        return total


def random_network(seed):
    """(network, inputs, criterion)."""
    maker = Maker(seed)
    maker.add("Plus", maker.add("Times", maker.parameter(6, 6), "x"), maker.parameter(6))
    while maker.count < 45:
        with contextlib.suppress(ShapeError):  # operands that do not fit: another try
            maker.step()
    x = np.random.default_rng((seed, 1)).standard_normal((6, FRAMES))
    return maker.network, {"x": np.asfortranarray(x)}, maker.finish()


def results(engine, matrices, criterion):
    engine.forward(matrices, training=True, criterion=criterion, **DROPOUT)
    value = engine.value(criterion).copy()
    engine.backward(criterion)
    learn = [node.name for node in engine.graph.order if node.needs_gradient]
    return {"J": value, **{name: engine.gradient(name).copy() for name in learn}}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_every_way_of_execution_gives_the_same(seed):
    network, matrices, criterion = random_network(seed)
    plain = Engine(network, [criterion], threads=1, options=EngineOptions.plain())
    expected = results(plain, matrices, criterion)
    ways = [{}, {"threads": 1}, {"threads": 2, "options": EngineOptions(fusion=False)}]
    for way in ways:
        engine = Engine(network, [criterion], **way)
        for found in (results(engine, matrices, criterion), results(engine, matrices, criterion)):
            assert found.keys() == expected.keys()
            for name, matrix in expected.items():
                scale = np.abs(matrix).max()
                np.testing.assert_allclose(found[name], matrix, rtol=1e-9, atol=1e-10 * scale, err_msg=f"{name} {way}")


@pytest.mark.parametrize("seed", range(30))
def test_reverse_mode_agrees_with_forward_mode(seed):
    network, matrices, criterion = random_network(seed)
    for comparison in compare_with_forward_mode(network, criterion, matrices, **DROPOUT):
        assert comparison.error < 1e-9, comparison


@pytest.mark.parametrize("seed", range(10))
def test_saved_and_loaded(seed, tmp_path):
    network, matrices, criterion = random_network(seed)
    save_model(network, tmp_path / "model")
    expected = results(Engine(network, [criterion], threads=1), matrices, criterion)
    loaded = load_model(tmp_path / "model")
    for name, matrix in results(Engine(loaded, [criterion], threads=1), matrices, criterion).items():
        np.testing.assert_array_equal(matrix, expected[name])
