"""Random cells of products and elementwise nodes: compiled, in single precision, against node by node in double."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.recurrence.loop_node import Loop
from acoustic.runtime.engine_options import EngineOptions
from readers.minibatches.sequence_layout import SequenceLayout

ROWS, INPUTS = 5, 3
UNARY = ("Sigmoid", "Tanh", "RectifiedLinear", "Negate")
BINARY = ("Plus", "Plus", "Plus", "Minus", "ElementTimes", "ElementTimes")


def cell(seed, precision, fusion, threads=1):
    """An engine of J above a random loop with one to three delays; some nodes inside are roots, too."""
    rng = np.random.default_rng(seed)
    network = Network(precision, threads=threads)
    network.add("Input", "x", rows=INPUTS)
    network.add("Input", "y", rows=ROWS)
    counter = iter(range(1000))

    def parameter(cols):
        return network.add("Parameter", f"p{next(counter)}", rows=ROWS, cols=cols).name

    names, delays = [], []
    for k in range(rng.integers(1, 4)):
        settings = {"rows": ROWS, "timeStep": int(rng.integers(1, 3)), "defaultHiddenActivity": 0.2 * k}
        delays.append(network.add_node("PastValue", f"d{k}", [None], settings).name)
    names += delays
    outside = [network.add("Times", f"u{k}", parameter(INPUTS), "x").name for k in range(rng.integers(1, 4))]
    names += outside
    for _ in range(rng.integers(4, 16)):
        name, kind = f"n{next(counter)}", rng.random()
        one, other = (names[k] for k in rng.integers(0, len(names), 2))
        if kind < 0.2:
            network.add("Times", name, parameter(ROWS), one)
        elif kind < 0.3:
            network.add("Plus", name, *rng.permutation([one, parameter(1)]).tolist())
        elif kind < 0.4:
            network.add("DiagTimes", name, parameter(1), one)
        elif kind < 0.6:
            network.add(str(rng.choice(UNARY)), name, one)
        else:
            network.add(str(rng.choice(BINARY)), name, one, other)
        names.append(name)
    # What is left over is added up, so that nothing is in vain, and squashed, so that it stays small.
    used = {operand.name for name in names for operand in network[name].operands if operand is not None}
    total, *rest = [name for name in names if name not in used] or names[-1:]
    for name in rest:
        total = network.add("Plus", f"n{next(counter)}", total, name).name
    out = network.add("Tanh", "out", total).name
    inner = [name for name in names if name not in delays and name not in outside]
    for k, name in enumerate(delays):
        network.connect(name, out if k == 0 else str(rng.choice([out, *inner])))
    network.add("SquareError", "J", "y", out)
    network.validate()
    for node in network.parameters():
        network.set_value(node, 0.5 * np.random.default_rng(len(node.name)).standard_normal(node.value.shape))
    roots = ["J", "out", *rng.choice([*inner, *outside], 1).tolist()]
    return network, Engine(network, roots, options=EngineOptions(fusion=fusion, compiled_loops=fusion)), roots


def results(network, engine, roots):
    rng, found = np.random.default_rng(0), []
    for lengths in ((6, 3, 5, 6), (4, 4)):
        layout = SequenceLayout.of_lengths(lengths)
        real = ~layout.gaps.ravel()
        matrices = {
            name: network.backend.asarray(rng.standard_normal((rows, len(real))) * real)
            for name, rows in (("x", INPUTS), ("y", ROWS))
        }
        for _ in range(3):  # the first passes are written down, the third is repeated
            engine.forward(matrices, training=True, layout=layout, criterion="J")
            to_host = network.backend.to_host
            found += [np.array(to_host(engine.value(name)))[:, real] for name in roots[1:]]
            engine.backward("J")
            learnable = sorted(node.name for node in engine.learnable())
            found += [np.array(to_host(engine.gradient(name))) for name in learnable]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seed", range(25))
def test_compiled_cells_give_what_their_nodes_give(seed, threads):
    network, engine, roots = cell(seed, "float", True, threads)
    loops = [node for node in engine.graph.order if isinstance(node, Loop)]
    assert loops
    assert all(loop.compiled is not None for loop in loops)
    plain, reference, _ = cell(seed, "double", False)
    assert all(node.compiled is None for node in reference.graph.order if isinstance(node, Loop))
    for one, other in zip(results(network, engine, roots), results(plain, reference, roots), strict=True):
        scale = max(1.0, np.abs(other).max())
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4 * scale)
