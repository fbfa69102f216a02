"""The asynchronous order (Algorithm 2.3): alone, and as the engine's, against the synchronous one."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.execution.branch_scheduler import Schedule
from acoustic.network.network import Network
from acoustic.runtime.engine_options import EngineOptions
from readers.errors import ModelError, ShapeError


def random_graph(rng, num_nodes):
    """Nodes 0, 1, ... with operands before them."""
    return {node: rng.choice(node, size=rng.integers(0, min(node, 3) + 1), replace=False) for node in range(num_nodes)}


# ---- the schedule


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("seed", range(5))
def test_every_node_once_and_after_its_operands(workers, seed):
    rng = np.random.default_rng(seed)
    operands = {node: set(map(int, below)) for node, below in random_graph(rng, 60).items()}
    done, lock, counts = set(), threading.Lock(), dict.fromkeys(operands, 0)

    def compute(node):
        with lock:
            assert operands[node] <= done
            counts[node] += 1
        with lock:
            done.add(node)

    with ThreadPoolExecutor(workers) as executor:
        Schedule(list(rng.permutation(60).tolist()), operands, compute, executor).run()
    assert set(counts.values()) == {1}


def test_a_part_of_a_graph_waits_for_nothing_outside_it():
    operands = {"a": (), "b": ("a", "a"), "c": ("a", "b"), "d": ("c", "outside")}
    order = []
    with ThreadPoolExecutor(2) as executor:
        Schedule(["d", "c", "b"], operands, order.append, executor).run()
        Schedule([], operands, order.append, executor).run()
    assert order == ["b", "c", "d"]


@pytest.mark.parametrize("workers", [1, 3])
def test_the_first_error_is_raised_and_what_needs_its_node_not_begun(workers):
    operands = {"a": (), "b": ("a",), "c": ("b",), "d": ()}
    computed = []

    def compute(node):
        if node == "b":
            raise ShapeError("b is wrong")
        computed.append(node)

    with ThreadPoolExecutor(workers) as executor, pytest.raises(ShapeError, match="b is wrong"):
        Schedule(list(operands), operands, compute, executor).run()
    assert "c" not in computed


# ---- the engine


def branching_network(num_branches=5, depth=3, precision="double", seed=0):
    """An input, branches of a few layers each that partly read each other, a stack of them, dropout, a criterion."""
    rng = np.random.default_rng(seed)
    network = Network(precision, threads=3, seed=seed)
    network.add("Input", "x", rows=6)
    network.add("Input", "labels", rows=4)
    below = ["x"]
    for branch in range(num_branches):
        top = str(rng.choice(below))
        for layer in range(depth):
            name = f"{branch}.{layer}"
            rows = network.shapes[top].rows
            network.add("Parameter", f"W{name}", rows=6, cols=rows, init="gaussian", initValueScale=4)
            network.add("Parameter", f"b{name}", rows=6, init="gaussian")
            product = network.add("Times", f"t{name}", f"W{name}", top)
            kind = str(rng.choice(["Sigmoid", "Tanh", "RectifiedLinear", "LogSoftmax", "Dropout"]))
            top = network.add(kind, f"h{name}", network.add("Plus", f"p{name}", product, f"b{name}")).name
            below.append(top)
    network.add("RowStack", "all", *[f"h{branch}.{depth - 1}" for branch in range(num_branches)])
    network.add("Parameter", "W", rows=4, cols=6 * num_branches, init="gaussian", initValueScale=4)
    network.add("Times", "z", "W", "all")
    network.add("CrossEntropyWithSoftmax", "J", "labels", "z")
    network.add("ErrorPrediction", "errors", "labels", "z")
    network.validate()
    return network


def data(num_frames, seed=0):
    rng = np.random.default_rng((seed, num_frames))
    labels = np.zeros((4, num_frames), order="F")
    labels[rng.integers(0, 4, num_frames), np.arange(num_frames)] = 1
    return {"x": np.asfortranarray(rng.standard_normal((6, num_frames))), "labels": labels}


def results(engine, network, matrices, **settings):
    engine.forward(matrices, training=True, **settings)
    values = [engine.value(name).copy() for name in engine.roots]
    engine.backward()
    return values + [engine.gradient(node.name).copy() for node in network.parameters()]


@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("seed", range(4))
def test_same_results_as_the_synchronous_engine(seed, precision):
    network = branching_network(precision=precision, seed=seed)
    roots = ["J", "errors", "z"]
    one, other = Engine(network, roots, threads=1), Engine(network, roots, options=EngineOptions(branches=True))
    assert other.max_workers == 1
    for num_frames in (1, 40, 7, 40):
        matrices, settings = data(num_frames, seed), {"dropout_rate": 0.3, "seed": (seed, num_frames)}
        expected = results(one, network, matrices, **settings)
        for first, second in zip(expected, results(other, network, matrices, **settings), strict=True):
            np.testing.assert_array_equal(first, second)


def test_many_passes_agree():
    """A node that ran before its operands would give an earlier pass's values, sooner or later."""
    network = branching_network(num_branches=8, depth=2)
    one, other = Engine(network, ["z"], threads=1), Engine(network, ["z"], options=EngineOptions(branches=True))
    for step in range(60):
        matrices = data(5, step)
        for engine in (one, other):
            engine.forward({"x": matrices["x"]})
        np.testing.assert_array_equal(one.value("z"), other.value("z"))


def test_only_what_is_new_is_computed_again(monkeypatch):
    network = Network("double", threads=2)
    for name in ("x", "y"):
        network.add("Input", name, rows=2)
        network.add("Sigmoid", f"s{name}", name)
    network.add("Plus", "z", "sx", "sy")
    engine = Engine(network, ["z"], options=EngineOptions(branches=True))
    computed = []
    for name in ("sx", "sy", "z"):
        right = network[name].forward

        def forward(*arguments, name=name, right=right, **buffers):
            computed.append(name)
            right(*arguments, **buffers)

        monkeypatch.setattr(network[name], "forward", forward)
    matrices = {name: np.ones((2, 3), order="F") for name in ("x", "y")}
    engine.forward(matrices)
    assert sorted(computed) == ["sx", "sy", "z"]
    computed.clear()
    engine.forward({"x": 2 * matrices["x"]})
    assert computed == ["sx", "z"]


def test_branches_run_at_the_same_time(monkeypatch):
    """Two branches that wait for each other in the middle of their computation."""
    network = Network("double", threads=2)
    if network.backend.team.size < 2:
        pytest.skip("numpy's BLAS has threads of its own")
    network.add("Input", "x", rows=2)
    for name in ("a", "b"):
        network.add("Sigmoid", name, "x")
    network.add("Plus", "sum", "a", "b")
    meeting = threading.Barrier(2, timeout=120)
    for name in ("a", "b"):
        right = network[name].forward

        def forward(*arguments, right=right, **buffers):
            meeting.wait()
            right(*arguments, **buffers)

        monkeypatch.setattr(network[name], "forward", forward)
    engine = Engine(network, ["sum"], options=EngineOptions(branches=True))
    engine.forward({"x": np.zeros((2, 3), order="F")})
    np.testing.assert_array_equal(engine.value("sum"), np.ones((2, 3)))


def test_an_error_in_a_branch_is_raised_and_the_next_pass_is_whole(monkeypatch):
    network = branching_network()
    engine = Engine(network, ["z"], options=EngineOptions(branches=True))
    matrices = {"x": data(5)["x"]}
    engine.forward(matrices)
    expected = engine.value("z").copy()
    with monkeypatch.context() as patch:
        patch.setattr(network["t2.1"], "forward", raise_error)
        with pytest.raises(ModelError, match="broken"):
            engine.forward({"x": 2 * matrices["x"]})
    engine.forward(matrices)
    np.testing.assert_array_equal(engine.value("z"), expected)


def raise_error(*arguments, **buffers):
    raise ModelError("broken")
