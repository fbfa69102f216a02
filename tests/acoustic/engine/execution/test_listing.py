"""The operations of a program: printed, run one after the other, compared with NumPy, and node by node."""

import re
from pathlib import Path

import numpy as np
import pytest
from numba import config as numba_config

from acoustic.engine.engine import Engine
from acoustic.engine.execution.program import Program
from acoustic.kernels.arrays.elementwise import ArrayKernels
from acoustic.network.network import Network
from acoustic.nodes.products import Times
from acoustic.runtime import blas
from acoustic.runtime.engine_options import EngineOptions
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import Momentum
from acoustic.training.update import Updater
from readers.errors import ModelError
from tests.acoustic.engine.test_options import SYSTEMS, trained

ROOT = Path(__file__).parents[4]
in_tables = pytest.mark.skipif(
    bool(numba_config.DISABLE_JIT) or blas.general_function() is None, reason="tables are not possible here"
)
FORWARD = """\
forward, 64 frames, 2 threads: 6 operations
  0 matmul                 W x -> z                    [4x32] @0 frames
  1 add_column             z b -> a                    [4x32] @0 frames
  2 sigmoid                a -> h                      [4x32] @0 frames
  3 cross_entropy_softmax  y h -> ce' work of ce       [4x32] @2 frames
    barrier
  4 copy                   ce' -> ce                   [1x1] @1
  5 accumulate             ce' +> ce                   [1x1] @1
"""
BACKWARD = """\
backward, 64 frames, 2 threads: 7 operations
  0 scale                  work of ce dce -> dh        [4x32] @3 frames
  1 sigmoid_gradient       dh h -> da                  [4x32] @3 frames
  2 sum_columns            da -> db                    [4x1] frames
    barrier
  3 matmul                 dz x -> dW                  [4x1] columns
  4 momentum               dW -> W velocity            [4x1] columns
  5 accumulate             db' +> db                   [4x1] columns
  6 momentum               db -> b velocity            [4x1] columns
"""


def layer(threads=2):
    network = Network(seed=1, threads=threads)
    network.add("Input", "x", rows=3)
    network.add("Input", "y", rows=4)
    network.add("Parameter", "W", rows=4, cols=3, initValueScale=5)
    network.add("Parameter", "b", rows=4)
    network.add("Sigmoid", "h", network.add("Plus", "a", network.add("Times", "z", "W", "x"), "b"))
    network.add("CrossEntropyWithSoftmax", "ce", "y", "h")
    return network


def train(network, options, minibatches=3):
    """An engine after some updates."""
    engine = Engine(network, ["ce"], options=options)
    updater = Updater(network, TrainingOptions(max_epochs=1, learning_rates_per_sample=0.1))
    for seed in range(minibatches):
        rng = np.random.default_rng(seed)
        matrices = {name: np.asfortranarray(rng.random((rows, 64), np.float32)) for name, rows in (("x", 3), ("y", 4))}
        engine.forward(matrices, training=True)
        updater.begin(0.1, 0.9, 64)
        engine.backward(on_gradient=updater)
    return engine


@in_tables
def test_operations_are_printed_once(monkeypatch, capsys):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    train(layer(), EngineOptions.from_text("trace"))
    assert capsys.readouterr().err == FORWARD + BACKWARD
    assert FORWARD + BACKWARD in (ROOT / "docs" / "explanation" / "engine.md").read_text(encoding="utf-8")


@in_tables
def test_a_program_is_a_list_of_operations(monkeypatch):
    """Run once more, it makes the same step from the same weights."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    network = layer()
    engine = train(network, EngineOptions())
    assert {"matmul", "sigmoid", "momentum", "accumulate"} < {operation.kernel for operation in engine.program}
    assert {"z", "h", "W"} < {operation.node for operation in engine.program}
    before = float(engine.value("ce")[0, 0])
    for _ in range(20):
        for operation in engine.program:
            operation.run()
    engine.forward()
    assert float(engine.value("ce")[0, 0]) < before


@in_tables
def test_the_operations_of_loops_are_among_those_of_the_program(monkeypatch, capsys):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    engine, _ = trained("lstm", EngineOptions.from_text("trace"))
    kernels = {operation.kernel for operation in engine.program}
    assert {
        "loop.prepare",
        "loop.finish",
        "loop.hand_out",
        "panels",
        "matmul",
        "all_steps",
        "all_steps_back",
        "momentum",
    } < kernels
    text = capsys.readouterr().err
    assert "all_steps              values constants defaults usable before\n" in text
    assert re.search(r"momentum +dL1\.(\w+)\.R -> L1\.\1\.R velocity", text)


@in_tables
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_kernel_gives_what_its_form_in_numpy_gives(system, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    trained(system, EngineOptions.from_text("check"))


@in_tables
def test_the_first_operation_that_differs_is_named(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")

    def sigmoid(self, x, out):
        out[...] = 1 / (1 + np.exp(-x))
        out[2, 5] += 0.5

    monkeypatch.setattr(ArrayKernels, "sigmoid", sigmoid)
    message = r"operation 2, sigmoid of node 'h': 0.5 from its form in NumPy; expected at most 0.001"
    with pytest.raises(ModelError, match=message):
        train(layer(), EngineOptions.from_text("check"))


@in_tables
@pytest.mark.parametrize("way", ["forward", "backward"])
def test_a_list_that_was_interrupted_is_made_again(way, monkeypatch):
    """Another array in place of a parameter: the lists of the passes before read the old one."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    network, rng = layer(), np.random.default_rng(0)
    matrices = {name: np.asfortranarray(rng.random((rows, 64), np.float32)) for name, rows in (("x", 3), ("y", 4))}

    def gradient(engine):
        engine.forward(matrices, training=True)
        if way == "backward" and engine is interrupted:
            with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
                patch.setattr(Program, "listed", interrupt)
                engine.backward()
            engine.forward(matrices, training=True)
        engine.backward()
        return engine.gradient("W").copy()

    def interrupt(*arguments):
        raise KeyboardInterrupt

    interrupted, other = Engine(network, ["ce"]), Engine(network, ["ce"])
    interrupted.forward(matrices, training=True)
    interrupted.backward()
    network["W"].value = np.asfortranarray(-network["W"].value)
    if way == "forward":
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Program, "listed", interrupt)
            interrupted.forward(matrices, training=True)
    np.testing.assert_array_equal(gradient(interrupted), gradient(other))


@pytest.mark.parametrize("threads", ["1", "2"])
def test_plain_passes_call_every_node_and_rule_in_every_minibatch(threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    calls = {}

    def count(kind, method):
        original = getattr(kind, method)

        def counted(self, *arguments, **buffers):
            calls[method] = calls.get(method, 0) + 1
            return original(self, *arguments, **buffers)

        monkeypatch.setattr(kind, method, counted)

    for kind, method in ((Times, "forward"), (Times, "backward"), (Momentum, "update")):
        count(kind, method)
    network = layer(threads=None)
    for number in (1, 4):
        calls.clear()
        train(network, EngineOptions.plain(), number)
        assert calls["forward"] == number * int(threads)
        assert calls["backward"] >= number
        assert calls["update"] >= 2 * number
