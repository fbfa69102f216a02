"""ForwardBackward and EditDistanceError: against all paths written out, against PyTorch, and the delay constraint."""

from itertools import groupby, product

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients, compare_with_forward_mode
from acoustic.network.network import Network
from readers.errors import ModelError, SequenceWarning
from tests.acoustic.nodes.test_crf import layout_of, pieces

BLANK = 2
LAYOUTS = [layout_of([4]), layout_of([3], [1], [4]), layout_of([2, 1, 3], [5, 1], [1])]
layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=["one", "ragged", "in rows"])


def network_of(precision="double", **options):
    """J of z = x + W, so that the gradient of W (rows, 1) sums that of z over the frames; z is an output, too."""
    network = Network(precision)
    network.add("Input", "labels", rows=3)
    network.add("Input", "x", rows=3)
    network.add("Parameter", "W", rows=3, cols=3)
    network.set_value("W", np.eye(3) + 0.1)
    network.add("Times", "z", "W", "x")
    network.add("ForwardBackward", "J", network.add("LabelsToGraph", "graph", "labels"), "z", **options)
    return network


def labels_of(layout, sequences):
    """The matrix of labels: each sequence is a list of (row, first frame); the other frames are blanks."""
    labels = np.zeros((3, layout.num_columns))
    for columns, sequence in zip(pieces(layout), sequences, strict=True):
        labels[BLANK, columns] = 1
        for row, frame in sequence:
            labels[:, columns[frame]] = 2 * np.eye(3)[row]
    return labels


def drawn(layout, rng):
    """Labels that a path of so many frames may have."""
    sequences = []
    for columns in pieces(layout):
        begins = [frame for frame in range(0, len(columns), 2) if rng.random() < 0.8] or [0]
        sequences.append([(int(rng.integers(2)), frame) for frame in begins])
    return sequences


def is_in_time(path, sequence, delay):
    """Whether every label, and the blank before it one frame earlier, ends early enough, as CNTK says."""
    if delay < 0:
        return True
    number, before = 0, BLANK  # labels begun so far
    for frame, row in enumerate(path):
        number += row not in (BLANK, before)
        before = row
        following = number if row != BLANK else number + 1
        limit = sequence[following][1] + delay - (row == BLANK) if following < len(sequence) else np.inf
        if frame > limit:
            return False
    return True


def enumerated(z, sequence, delay=-1):
    """(-ln P, posteriors) of one sequence, over all of the rows to the power of the frames."""
    labels = [row for row, _ in sequence]
    p = np.exp(z) / np.exp(z).sum(axis=0)
    total, posterior = 0.0, np.zeros_like(z)
    for path in product(range(3), repeat=z.shape[1]):
        if [row for row, _ in groupby(path) if row != BLANK] == labels and is_in_time(path, sequence, delay):
            probability = np.prod(p[path, range(len(path))])
            total += probability
            posterior[path, range(len(path))] += probability
    return -np.log(total), posterior / total


@layouts
@pytest.mark.parametrize("delay", [-1, 0, 1])
def test_all_paths(layout, delay):
    rng = np.random.default_rng(3)
    sequences = drawn(layout, rng)
    inputs = {"labels": labels_of(layout, sequences), "x": rng.standard_normal((3, layout.num_columns))}
    network = network_of(delayConstraint=delay)
    engine = Engine(network, ["J", "z"])
    engine.forward(inputs, training=True, criterion="J", layout=layout)
    engine.backward("J")
    z = engine.value("z")
    expected, gradient = 0.0, np.zeros_like(z)
    for columns, sequence in zip(pieces(layout), sequences):
        cost, posterior = enumerated(z[:, columns], sequence, delay)
        expected += cost
        gradient[:, columns] = np.exp(z[:, columns]) / np.exp(z[:, columns]).sum(axis=0) - posterior
    assert engine.value("J").item() == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(engine.gradient("W"), gradient @ inputs["x"].T, atol=1e-12)
    for comparison in (
        *check_gradients(network, "J", inputs, layout=layout),
        *compare_with_forward_mode(network, "J", inputs, layout=layout),
    ):
        assert comparison.error < 1e-7, comparison


@pytest.mark.parametrize(("precision", "tolerance"), [("double", 1e-12), ("float", 1e-6)])
def test_pytorch(precision, tolerance):
    torch = pytest.importorskip("torch")
    layout = layout_of([40], [31], [25])
    rng = np.random.default_rng(5)
    sequences = drawn(layout, rng)
    sequences[1] = sequences[1][:1]
    inputs = {"labels": labels_of(layout, sequences), "x": rng.standard_normal((3, layout.num_columns))}
    engine = Engine(network_of(precision), ["J", "z"])
    engine.forward(inputs, training=True, criterion="J", layout=layout)
    engine.backward("J")
    weights = torch.tensor(np.eye(3) + 0.1, requires_grad=True)  # double in both cases
    x = torch.tensor(inputs["x"].T.reshape(40, 3, 3))
    targets = torch.tensor([row for sequence in sequences for row, _ in sequence])
    loss = torch.nn.functional.ctc_loss(
        (x @ weights.T).log_softmax(-1), targets, torch.tensor([40, 31, 25]),
        torch.tensor([len(sequence) for sequence in sequences]), blank=BLANK, reduction="sum",
    )  # fmt: skip
    loss.backward()
    assert engine.value("J").item() == pytest.approx(loss.item(), rel=tolerance)
    scale = float(weights.grad.abs().max())
    np.testing.assert_allclose(engine.gradient("W"), weights.grad.numpy(), atol=tolerance * scale)


def test_a_sequence_without_a_path_does_not_train():
    layout = layout_of([2], [3])
    labels = labels_of(layout, [[(0, 0), (0, 1)], [(1, 0)]])  # two equal labels need three frames
    x = np.random.default_rng(0).standard_normal((3, layout.num_columns))
    engine = Engine(network_of(), ["J", "z"])
    with pytest.warns(SequenceWarning, match="the sequence of 2 frames from column 0 on has no path"):
        engine.forward({"labels": labels, "x": x}, training=True, criterion="J", layout=layout)
    engine.backward("J")
    columns = pieces(layout)[1]
    z = engine.value("z")[:, columns]
    cost, posterior = enumerated(z, [(1, 0)])
    assert engine.value("J").item() == pytest.approx(20 + cost)
    gradient = np.exp(z) / np.exp(z).sum(axis=0) - posterior
    np.testing.assert_allclose(engine.gradient("W"), gradient @ x[:, columns].T, atol=1e-12)


def test_labels_that_no_frame_begins_are_runs():
    labels = np.eye(3)[:, [0, 0, 1, 2, 2, 1]]
    engine = Engine(network_of(), ["graph"])
    engine.forward({"labels": labels, "x": np.zeros((3, 6))}, layout=layout_of([6]))
    np.testing.assert_array_equal(engine.value("graph").max(axis=0), [2, 1, 2, 2, 1, 2])


def errors_of(reference, guess, layout, **options):
    network = Network("double")
    network.add("Input", "labels", rows=4)
    network.add("Input", "x", rows=4)
    network.add("EditDistanceError", "E", "labels", "x", **options)
    engine = Engine(network, ["E"])
    engine.forward({"labels": np.eye(4)[:, reference], "x": np.eye(4)[:, guess]}, layout=layout)
    return engine.value("E").item()


@pytest.mark.parametrize(
    ("reference", "guess", "options", "errors", "labels"),
    [
        ([0, 3, 0, 1, 3, 3], [3, 0, 0, 3, 0, 1], {"squashInputs": True, "tokensToIgnore": "3"}, 0, 3),
        ([0, 1, 2, 3], [1, 2, 3, 3], {}, 2, 4),
        ([0, 1, 2, 3], [1, 2, 3, 3], {"subPen": 0.1}, 3, 4),  # three cheap substitutions, counted as errors
        ([0, 1, 1, 3], [0, 1, 3, 3], {"squashInputs": True}, 0, 3),
        ([0, 1, 3, 3], [3, 3, 3, 3], {"squashInputs": True, "tokensToIgnore": "3:2"}, 2, 2),
    ],
)
def test_edit_distance(reference, guess, options, errors, labels):
    assert errors_of(reference, guess, layout_of([len(guess)]), **options) == errors * len(guess) / labels


def test_edit_distance_of_sequences_side_by_side():
    layout = layout_of([3], [2])  # columns 0, 2, 4 and 1, 3; column 5 is a gap
    assert errors_of([0, 1, 1, 1, 2, 0], [0, 1, 2, 1, 2, 3], layout) == 1 * 5 / 5


@pytest.mark.parametrize(
    ("type_name", "option", "message"),
    [
        ("ForwardBackward", {"delayConstraint": -2}, "delayConstraint -2; expected -1 or more"),
        ("EditDistanceError", {"insPen": -1}, "insPen -1; expected at least 0"),
        ("EditDistanceError", {"tokensToIgnore": "1:b"}, "tokensToIgnore has 'b'; expected rows, separated by ':'"),
    ],
)
def test_bad_options(type_name, option, message):
    network = Network()
    network.add("Input", "x", rows=3)
    with pytest.raises(ModelError, match=message):
        network.add(type_name, "v", "x", "x", **option)
