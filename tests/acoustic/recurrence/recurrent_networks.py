"""What tests of recurrent networks share: networks from NDL, ragged sequences, their minibatches, sums of gradients."""

import numpy as np

from acoustic.descriptions.ndl.evaluate import Scope
from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import GradientChecker
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from readers.config.syntax import Source
from readers.minibatches.sequence_layout import SequenceLayout

INPUTS, CLASSES = 4, 3
HEAD = f"x=Input({INPUTS}, tag=feature)\nlabels=Input({CLASSES}, tag=label)\n"
TAIL = (
    f"\nz=Plus(Times(Parameter({CLASSES}, 0), top), Parameter({CLASSES}, 1))\n"
    "J=CrossEntropyWithSoftmax(labels, z, tag=criteria)"
)


def randomise(network, scale=0.6, seed=5):
    """Parameters of some size, so that everything shows."""
    rng = np.random.default_rng(seed)
    for node in network.parameters():
        network.set_value(node, rng.standard_normal(node.value.shape) * scale)
    return network


def of_ndl(script, precision="double", threads=1):
    """A network in which `script` makes `top` of x; J is the cross entropy of z, which follows from top."""
    network = Network(precision, threads=threads)
    Scope(network).evaluate(Source.from_text(f"{HEAD}{script}{TAIL}", "net.ndl"))
    network.validate()
    return randomise(network)


def data(lengths, seed=0):
    """Sequences of inputs and labels."""
    rng = np.random.default_rng(seed)
    xs = [rng.standard_normal((INPUTS, length)) for length in lengths]
    return xs, [np.eye(CLASSES)[:, rng.integers(0, CLASSES, length)] for length in lengths]


def packed(sequences):
    """Columns t * S + s, zeros in the gaps."""
    steps, slots = max(one.shape[1] for one in sequences), len(sequences)
    columns = np.zeros((sequences[0].shape[0], steps, slots))
    for s, one in enumerate(sequences):
        columns[:, : one.shape[1], s] = one
    return np.asfortranarray(columns.reshape(len(columns), -1))


def whole(xs, labels):
    """(matrices, layout) of sequences side by side."""
    layout = SequenceLayout.of_lengths([x.shape[1] for x in xs])
    return {"x": packed(xs), "labels": packed(labels)}, layout


def cut(xs, labels, sizes):
    """The minibatches of whole sequences cut after every so many steps; later parts go on with the earlier ones."""
    matrices, layout = whole(xs, labels)
    slots, first = layout.num_sequences, 0
    for size in sizes:
        steps, columns = slice(first, first + size), slice(first * slots, (first + size) * slots)
        part = SequenceLayout(slots, size, layout.starts[steps], layout.ends[steps], layout.gaps[steps])
        yield {name: matrix[:, columns] for name, matrix in matrices.items()}, part
        first += size


def gradients(network, batches):
    """(sum of the criterion, sums of the gradients by name) over (matrices, layout), in order."""
    learning = [node for node in forward_order([network["J"]]) if node.needs_gradient]
    engine = Engine(network, ["J"])
    total, sums = 0.0, {}
    for matrices, layout in batches:
        engine.forward(matrices, training=True, layout=layout)
        total += float(engine.value("J")[0, 0])
        engine.backward()
        for node in learning:
            sums[node.name] = sums.get(node.name, 0) + engine.gradient(node.name).copy()
    return total, sums


def values(network, name, batches):
    """The values of a node in each of (matrices, layout), in order, side by side."""
    engine = Engine(network, [name])
    found = []
    for matrices, layout in batches:
        engine.forward(matrices, layout=layout)
        found.append(engine.value(name).copy())
    return np.concatenate(found, axis=1)


def check_numerically(network, matrices, layout, **settings):
    """Every parameter's gradient along one random direction, against central differences."""
    checker = GradientChecker(Engine(network, ["J"]), "J", matrices, layout=layout, **settings)
    computed, rng = checker.gradients(), np.random.default_rng(1)
    for node in checker.learnable():
        direction = rng.standard_normal(node.value.shape)
        slope = checker.slope(node, direction, 1e-5)
        np.testing.assert_allclose(np.vdot(direction, computed[node.name]), slope, rtol=1e-6, atol=1e-7)


def check_part_numerically(network, parts):
    """The gradient of the last of several parts, with the state that it goes on with held fixed."""
    *heads, (tail, last) = parts
    engine = Engine(network, ["J"])

    def run_heads():
        for matrices, layout in heads:
            engine.forward(matrices, training=True, layout=layout)

    run_heads()
    engine.forward(tail, training=True, layout=last)
    engine.backward()
    learning = [node for node in forward_order([network["J"]]) if node.needs_gradient]
    computed = {node.name: engine.gradient(node.name).copy() for node in learning}
    rng = np.random.default_rng(1)
    for node in learning:
        direction, original, found = rng.standard_normal(node.value.shape), node.value, []
        for sign in (1, -1):
            run_heads()
            node.value = np.asfortranarray(original + sign * 1e-5 * direction)
            engine.forward(tail, training=True, layout=last)
            found.append(float(engine.value("J")[0, 0]))
            node.value = original
        slope = (found[0] - found[1]) / 2e-5
        np.testing.assert_allclose(np.vdot(direction, computed[node.name]), slope, rtol=1e-6, atol=1e-7)


def check_parallel_is_the_sum(network, lengths=(5, 7, 1, 4)):
    """Sequences side by side give the sums of what each gives alone."""
    xs, labels = data(lengths)
    total, sums = gradients(network, [whole([x], [y]) for x, y in zip(xs, labels)])
    together, found = gradients(network, [whole(xs, labels)])
    np.testing.assert_allclose(together, total, rtol=1e-12)
    for name, expected in sums.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-9, atol=1e-12)


def filled(xs, labels, packing):
    """The minibatches of a packing (readers.minibatches.sequence_packing) of sequences, labels of the context too."""
    for layout, pieces in packing:
        shape = (layout.num_steps, layout.num_sequences)
        columns = {"x": np.zeros((INPUTS, *shape)), "labels": np.zeros((CLASSES, *shape))}
        for sequence, first, count, slot, step in pieces:
            for name, sources in (("x", xs), ("labels", labels)):
                columns[name][:, step : step + count, slot] = sources[sequence][:, first : first + count]
        yield {name: np.asfortranarray(one.reshape(len(one), -1)) for name, one in columns.items()}, layout
