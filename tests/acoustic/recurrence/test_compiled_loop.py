"""Loops in their compiled form, single precision, against the same loops node by node in double precision."""

import ctypes

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.recurrence import compiled_loop, work_split
from acoustic.recurrence.loop_node import Loop
from acoustic.runtime import blas, tables
from acoustic.runtime.engine_options import EngineOptions
from acoustic.runtime.operations import Table
from acoustic.runtime.products import multiply
from acoustic.runtime.thread_team import ThreadTeam
from acoustic.training.options import TrainingOptions
from acoustic.training.update import Updater
from readers.minibatches.sequence_layout import SequenceLayout

SIZE, INPUTS = 20, 5


def recurrent(precision, type_name, operands, fusion=True, threads=1):
    """(engine, network) of J above h(t) = tanh(f(h(t-1), ...) + R1 h(t-1) + R2 g(t)), g(t) = sigmoid(R3 h(t-1) + u)."""
    network = Network(precision, threads=threads)
    network.add("Input", "x", rows=INPUTS)
    network.add("Input", "y", rows=SIZE)
    network.add_node("PastValue", "h", [None], {"rows": SIZE})
    shapes = {"W": (SIZE, INPUTS), "R1": (SIZE, SIZE), "R2": (SIZE, SIZE), "R3": (SIZE, SIZE), "P": (SIZE, 1)}
    for name, (rows, cols) in shapes.items():
        network.add("Parameter", name, rows=rows, cols=cols, init="gaussian", initValueScale=2 if cols > 1 else 1)
    network.add("Times", "u", "W", "x")
    if "s" in operands:
        network.add("Times", "s", network.add("Parameter", "S", rows=1, cols=INPUTS), "x")
    network.add(type_name, "f", *operands)
    network.add("Plus", "a", network.add("Times", "r1", "R1", "h"), "f")
    network.add("Sigmoid", "g", network.add("Plus", "b", network.add("Times", "r3", "R3", "h"), "u"))
    network.add("Tanh", "out", network.add("Plus", "c", "a", network.add("Times", "r2", "R2", "g")))
    network.connect("h", "out")
    network.add("SquareError", "J", "y", network.add("Plus", "top", "out", "g"))
    network.validate()
    return Engine(network, ["J", "out"], options=EngineOptions(fusion=fusion, compiled_loops=fusion)), network


def results(engine, network, lengths=(7, 3, 9), parts=1):
    """The criterion, the values and the gradients of sequences side by side, or of parts of them one after another."""
    rng = np.random.default_rng(4)
    layout, found = SequenceLayout.of_lengths(lengths), []
    x, y = (rng.standard_normal((rows, layout.num_columns)) * ~layout.gaps.ravel() for rows in (INPUTS, SIZE))
    slots, steps = len(lengths), layout.num_steps // parts
    for first in range(0, layout.num_steps, steps):
        chosen, columns = slice(first, first + steps), slice(first * slots, (first + steps) * slots)
        marks = (layout.starts[chosen], layout.ends[chosen], layout.gaps[chosen])
        matrices = {"x": network.backend.asarray(x[:, columns]), "y": network.backend.asarray(y[:, columns])}
        engine.forward(matrices, training=True, layout=SequenceLayout(slots, steps, *marks))
        found += [engine.value("J").copy(), engine.value("out")[:, ~marks[2].ravel()]]
        engine.backward()
        learning = sorted(node.name for node in engine.graph.order if node.needs_gradient)
        found += [engine.gradient(name).copy() for name in learning]
    return found


def loop_of(engine):
    return next(node for node in engine.graph.order if isinstance(node, Loop))


ELEMENTWISE = [
    ("Plus", ("h", "u")),
    ("Plus", ("P", "h")),
    ("Plus", ("h", "h")),
    ("Minus", ("h", "u")),
    ("Minus", ("u", "h")),
    ("ElementTimes", ("u", "h")),
    ("ElementTimes", ("h", "h")),
    ("ElementTimes", ("h", "P")),
    ("DiagTimes", ("P", "h")),
    ("Sigmoid", ("h",)),
    ("Tanh", ("h",)),
    ("RectifiedLinear", ("h",)),
    ("Negate", ("h",)),
]


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(("type_name", "operands"), ELEMENTWISE, ids=str)
def test_compiled_loops_give_what_the_nodes_give(type_name, operands, parts):
    compiled, network = recurrent("float", type_name, operands)
    assert loop_of(compiled).compiled is not None
    reference, twin = recurrent("double", type_name, operands, fusion=False)
    assert loop_of(reference).compiled is None
    for node in network.parameters():
        twin.set_value(node.name, node.value.astype(float))
    for _ in range(2):  # the second time in memory that holds something
        for one, other in zip(results(compiled, network, parts=parts), results(reference, twin, parts=parts)):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(
    ("type_name", "operands"), [("Softmax", ("h",)), ("Dropout", ("h",)), ("Plus", ("h", "s")), ("Plus", ("s", "h"))]
)  # s has one row, which is added to all
def test_a_loop_with_another_node_is_computed_node_by_node(type_name, operands):
    engine, network = recurrent("float", type_name, operands)
    assert loop_of(engine).compiled is None
    reference, twin = recurrent("double", type_name, operands)
    for node in network.parameters():
        twin.set_value(node.name, node.value.astype(float))
    for one, other in zip(results(engine, network), results(reference, twin)):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


def test_numbers_of_columns_may_change():
    compiled, network = recurrent("float", "Tanh", ("h",))
    first = results(compiled, network)
    results(compiled, network, lengths=(4, 4))
    for one, other in zip(results(compiled, network), first):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("threads", [1, 2])
def test_parameters_may_change_one_after_another(threads, monkeypatch):
    """As many as in the pass that was written down, but others."""
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    compiled, network = recurrent("float", "Tanh", ("h",), threads=threads)
    assert loop_of(compiled).compiled is not None
    layout, rng = SequenceLayout.of_lengths((9,) * 8), np.random.default_rng(0)
    x, y = (np.asfortranarray(rng.standard_normal((rows, 72)), np.float32) for rows in (INPUTS, SIZE))

    def out(engine):
        engine.forward({"x": x, "y": y}, layout=layout)
        return engine.value("out").copy()

    out(compiled)
    for name in ("R1", "R1", "R1", "R2", "R3", "R3", "R1"):
        network[name].value *= np.float32(0.7)
        network[name].touch()
        reference = Engine(network, ["J", "out"], options=EngineOptions.plain(), threads=1)
        np.testing.assert_allclose(out(compiled), out(reference), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_parameters_are_laid_out_again_after_a_pass_that_failed(threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    compiled, network = recurrent("float", "Tanh", ("h",), threads=threads)
    reference = Engine(network, ["J", "out"], options=EngineOptions.plain(), threads=1)
    results(compiled, network, (9,) * 8)
    for node in network.parameters():
        node.value *= np.float32(0.7)
        node.touch()
    with monkeypatch.context() as patch:
        patch.setattr(Table, "run", interrupt)
        patch.setattr(ThreadTeam, "play", interrupt)
        with pytest.raises(KeyboardInterrupt):
            results(compiled, network, (9,) * 8)
    for one, other in zip(results(compiled, network, (9,) * 8), results(reference, network, (9,) * 8), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=5e-5)


@pytest.mark.parametrize("name", ["W", "R", "b"])
@pytest.mark.parametrize("threads", [1, 2])
def test_parameters_may_move_to_other_memory(threads, name, monkeypatch):
    """After passes that were listed with the former address."""
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    network = Network("float", threads=threads)
    network.add("Input", "x", rows=INPUTS)
    network.add("Input", "y", rows=SIZE)
    network.add_node("PastValue", "h", [None], {"rows": SIZE})
    for parameter, cols in (("W", INPUTS), ("R", SIZE), ("b", 1)):
        network.add("Parameter", parameter, rows=SIZE, cols=cols, init="gaussian", initValueScale=2)
    network.add("Plus", "sum", network.add("Times", "u", "W", "x"), network.add("Times", "r", "R", "h"))
    network.add("Tanh", "out", network.add("Plus", "all", "sum", "b"))
    network.connect("h", "out")
    network.add("SquareError", "J", "y", "out")
    network.validate()
    layout, rng = SequenceLayout.of_lengths((9,) * 8), np.random.default_rng(0)
    matrices = {
        name: np.asfortranarray(rng.standard_normal((rows, 72)), np.float32)
        for name, rows in (("x", INPUTS), ("y", SIZE))
    }

    def gradient(engine):
        engine.forward(matrices, training=True, layout=layout)
        engine.backward()
        return engine.gradient(name).copy()

    engine = Engine(network, ["J", "out"])
    for _ in range(3):
        gradient(engine)
    node = network[name]
    former, node.value = node.value, node.value * np.float32(0.7)
    node.touch()
    former.fill(np.nan)  # it stays where it is, but nothing may read it
    plain = Engine(network, ["J", "out"], options=EngineOptions.plain(), threads=1)
    np.testing.assert_allclose(gradient(engine), gradient(plain), rtol=2e-4, atol=5e-5)


def interrupt(*arguments):
    raise KeyboardInterrupt


def test_shorter_minibatches_lie_in_the_memory_of_longer_ones():
    engine, network = recurrent("float", "Plus", ("h", "u"))
    results(engine, network, (9, 3))
    memory = loop_of(engine).compiled.memory[0]
    results(engine, network, (4, 2))
    assert loop_of(engine).compiled.memory[0] is memory


@pytest.mark.slow
@pytest.mark.parametrize("laid_out_from", [0, 1000], ids=["panels", "as it is"])
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("lengths", [(7, 3), (6, 5, 2, 9, 1, 1, 4, 8, 2), (9,) * 8])
def test_threads_that_share_a_loop_change_nothing_but_rounding(lengths, threads, laid_out_from, monkeypatch):
    monkeypatch.setattr(compiled_loop, "LAID_OUT_FROM", laid_out_from)
    alone, network = recurrent("float", "DiagTimes", ("P", "h"))
    shared, twin = recurrent("float", "DiagTimes", ("P", "h"), threads=threads)
    for _ in range(4):
        for one, other in zip(results(alone, network, lengths), results(shared, twin, lengths)):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


RULES = {
    "momentum": {"momentum_per_minibatch": 0.9},
    "clipped": {"momentum_per_minibatch": 0.5, "clipping_threshold": 0.01},
    "whole": {"momentum_per_minibatch": 0.5, "clipping_threshold": 0.01, "clip_by_truncation": False},
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rule", RULES)
def test_parameters_are_updated_as_their_gradients_say(rule, threads):
    """Whoever makes the columns of a gradient may update them: as without threads and without compiled loops."""
    trained = []
    for fusion, count in ((True, threads), (False, 1)):
        engine, network = recurrent("float", "DiagTimes", ("P", "h"), fusion, count)
        updater = Updater(network, TrainingOptions(learning_rates_per_sample=0.01, max_epochs=1, **RULES[rule]))
        for node in trained[0][0] if trained else ():
            network.set_value(node, trained[0][0][node].copy(order="F"))
        start = {node.name: node.value.copy(order="F") for node in network.parameters()}
        for number in range(6):
            rng = np.random.default_rng(number % 2)
            lengths = (5, 6, 6, 4, 6, 6, 6, 6) if number < 5 else (3, 9)
            layout = SequenceLayout.of_lengths(lengths)
            real = ~layout.gaps.ravel()
            x, y = (
                np.asfortranarray(rng.standard_normal((rows, len(real))) * real, np.float32) for rows in (INPUTS, SIZE)
            )
            engine.forward({"x": x, "y": y}, training=True, layout=layout)
            updater.begin(0.01 / (1 + number // 3), RULES[rule]["momentum_per_minibatch"], int(real.sum()))
            engine.backward(on_gradient=updater)
        trained.append((start, {node.name: node.value for node in network.parameters()}))
    (start, mine), (_, plain) = trained
    for name, before in start.items():
        moved = np.abs(plain[name] - before).max()
        assert moved > 1e-4
        np.testing.assert_allclose(mine[name], plain[name], rtol=0, atol=2e-3 * moved)


def test_other_libraries_give_the_same(monkeypatch):
    """OpenBLAS with 64-bit dimensions where numpy's wheels have it."""
    expected = results(*recurrent("float", "DiagTimes", ("P", "h")))
    sgemm = blas._numpys_gemm(np.dtype(np.float32))
    address = blas.address_of(sgemm), sgemm.argtypes[3] is ctypes.c_int64
    monkeypatch.setattr(work_split, "general_function", lambda: address)
    work_split._functions.cache_clear()
    compiled, network = recurrent("float", "DiagTimes", ("P", "h"))
    for one, other in zip(results(compiled, network), expected):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    work_split._functions.cache_clear()


def test_nothing_compiled_and_no_known_library_go_node_by_node(monkeypatch):
    monkeypatch.setattr(tables, "is_compiled", lambda: False)
    engine, network = recurrent("float", "Tanh", ("h",))
    assert loop_of(engine).compiled is None
    assert len(results(engine, network)) > 2
    monkeypatch.undo()
    monkeypatch.setattr(blas, "general_function", lambda: None)
    assert loop_of(recurrent("float", "Tanh", ("h",))[0]).compiled is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("scale", "keep"), [(1, 0), (1, 1), (0.5, 2)])
def test_a_product_may_go_into_rows_of_a_larger_matrix(dtype, scale, keep):
    rng = np.random.default_rng(3)
    a, b, whole = (np.asfortranarray(rng.standard_normal(shape), dtype) for shape in ((4, 3), (3, 5), (10, 5)))
    expected = whole.copy()
    expected[2:6] = scale * a @ b + keep * whole[2:6]
    multiply(a, b, whole[2:6], scale, keep)
    np.testing.assert_allclose(whole, expected, rtol=1e-5, atol=1e-6)
