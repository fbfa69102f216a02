"""CRF and SequenceDecoder against all paths written out, plain and compiled, on ragged sequences and with loops."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients
from acoustic.kernels.arrays.elementwise import ArrayKernels
from acoustic.kernels.arrays.sequence import SequenceMarks
from acoustic.kernels.compiled.elementwise import CompiledKernels
from acoustic.network.network import Network
from readers.errors import ModelError
from readers.minibatches.indicators import Indicators
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.recurrence.recurrent_networks import randomise

LABELS = 3
PLAIN, COMPILED = ArrayKernels(np), CompiledKernels()
both = pytest.mark.parametrize(
    ("kernels", "dtype"), [(PLAIN, np.float64), (COMPILED, np.float32)], ids=["plain", "jit"]
)


def layout_of(*slots):
    """Slots of sequences one after another, by length; negative: the first goes on from before, or the last goes on."""
    steps = max(sum(map(abs, lengths)) for lengths in slots)
    starts, ends, gaps = (np.zeros((steps, len(slots)), bool) for _ in range(3))
    gaps[:] = True
    for slot, lengths in enumerate(slots):
        step = 0
        for place, length in enumerate(lengths):
            starts[step, slot] = length > 0 or place > 0
            step += abs(length)
            ends[step - 1, slot] = length > 0 or place + 1 < len(lengths)
        gaps[:step, slot] = False
    return SequenceLayout(len(slots), steps, starts, ends, gaps)


LAYOUTS = [
    layout_of([4]),
    layout_of([3], [1], [4]),
    layout_of([2, 1, 3], [5, 1], [1]),
    layout_of([-3, 2], [1, -4], [5]),
    replace(layout_of([6], [2, -4], [3]), num_context=2),
]
layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=["one", "ragged", "in rows", "parts", "context"])


def pieces(layout):
    """The columns of every sequence, as far as the minibatch has it."""
    found = []
    for slot in range(layout.num_sequences):
        for step in range(layout.num_steps):
            if not layout.gaps[step, slot] and step < layout.num_kept:
                if step == 0 or layout.starts[step, slot]:
                    found.append([])
                found[-1].append(step * layout.num_sequences + slot)
    return found


def score(h, a, columns, path):
    return sum(h[label, column] for label, column in zip(path, columns)) + sum(a[pair] for pair in pairwise(path))


def enumerated(layout, labels, h, a):
    """(loss, dJ/dH, dJ/dA, best paths) from every path there is."""
    loss, grad_h, grad_a, best = 0.0, np.zeros_like(h), np.zeros_like(a), np.zeros_like(h)
    for columns in pieces(layout):
        paths = list(product(range(len(h)), repeat=len(columns)))
        scores = np.array([score(h, a, columns, path) for path in paths])
        right = tuple(labels[columns])
        loss += np.log(np.exp(scores).sum()) - score(h, a, columns, right)
        weights = [*zip(np.exp(scores) / np.exp(scores).sum(), paths), (-1.0, right)]
        for weight, path in weights:
            for label, column in zip(path, columns):
                grad_h[label, column] += weight
            for pair in pairwise(path):
                grad_a[pair] += weight
        best[paths[scores.argmax()], columns] = 1
    return loss, grad_h, grad_a, best


def draw(layout, seed=0):
    rng = np.random.default_rng(seed)
    count = layout.num_columns
    h, a = (np.asfortranarray(rng.normal(0, 1.5, shape)) for shape in ((LABELS, count), (LABELS, LABELS)))
    return rng.integers(0, LABELS, count), h, a


@both
@layouts
def test_all_paths(kernels, dtype, layout):
    labels, h, a = draw(layout)
    expected = enumerated(layout, labels, h, a)
    marks, single = SequenceMarks.of_layout(layout), [matrix.astype(dtype) for matrix in (h, a)]
    outs = [np.full(shape, np.nan, dtype, order="F") for shape in ((1, 1), h.shape, a.shape, h.shape)]
    kernels.crf_loss(marks, labels, *single, outs[0])
    kernels.crf_gradient(marks, labels, *single, *outs[1:3])
    kernels.viterbi(marks, *single, outs[3])
    for found, one in zip(outs, expected):
        np.testing.assert_allclose(found, np.reshape(one, found.shape), rtol=1e-5, atol=1e-5)


@both
def test_context_belongs_to_no_path(kernels, dtype):
    """Steps that are there to be seen alone count as if they were not there; so do minibatches of gaps."""
    part = LAYOUTS[3]
    none, over = np.zeros((2, 3), bool), np.tile(part.ends[-1] | part.gaps[-1], (2, 1))
    longer = [np.concatenate(pair) for pair in ((part.starts, none), (part.ends, none), (part.gaps, over))]
    layout = SequenceLayout(3, part.num_steps + 2, *longer, num_context=2)
    assert not layout.gaps[-1].all()
    labels, h, a = draw(layout)
    values = []
    for marks, count in (
        (SequenceMarks.of_layout(layout), layout.num_columns),
        (SequenceMarks.of_layout(part), part.num_columns),
    ):
        outs = [np.empty(shape, dtype, order="F") for shape in ((1, 1), (LABELS, count), a.shape, (LABELS, count))]
        single = np.asfortranarray(h[:, :count], dtype), a.astype(dtype)
        kernels.crf_loss(marks, labels[:count], *single, outs[0])
        kernels.crf_gradient(marks, labels[:count], *single, *outs[1:3])
        kernels.viterbi(marks, *single, outs[3])
        assert not outs[1][:, part.num_columns :].any()
        assert not outs[3][:, part.num_columns :].any()
        values.append([out[:, : part.num_columns] for out in outs])
    for one, other in zip(*values):
        np.testing.assert_array_equal(one, other)
    nothing = SequenceMarks(*np.zeros((3, 2, 3), bool))
    single, out = (np.zeros((LABELS, 6), dtype, order="F"), a.astype(dtype)), np.ones((1, 1), dtype)
    kernels.crf_loss(nothing, labels[:6], *single, out)
    assert out[0, 0] == 0


@both
def test_long_sequences_and_large_scores_stay_finite(kernels, dtype):
    rng = np.random.default_rng(0)
    h = np.asfortranarray(rng.normal(0, 30, (5, 400)), dtype)
    a = np.asfortranarray(rng.normal(0, 10, (5, 5)), dtype)
    a[1, 2] = -1e4  # never
    marks, loss = SequenceMarks.of_columns(400), np.empty((1, 1), dtype)
    path = np.empty_like(h, order="F")
    kernels.viterbi(marks, h, a, path)
    best = path.argmax(axis=0)
    assert not ((best[:-1] == 1) & (best[1:] == 2)).any()
    kernels.crf_loss(marks, best, h, a, loss)
    assert 0 <= loss[0, 0] < 400 * np.log(5)
    grad_h, grad_a = np.empty_like(h, order="F"), np.empty_like(a, order="F")
    kernels.crf_gradient(marks, best, h, a, grad_h, grad_a)
    np.testing.assert_allclose(grad_h.sum(axis=0), 0, atol=1e-4)
    assert np.isfinite(grad_a).all()
    assert grad_a[1, 2] == 0


def test_compiled_is_plain_with_many_labels():
    layout, rng = layout_of([30], [20, 5]), np.random.default_rng(1)
    h, a = (np.asfortranarray(rng.standard_normal(shape)) for shape in ((40, 60), (40, 40)))
    labels = rng.integers(0, 40, 60)
    results = []
    for kernels, dtype in ((PLAIN, np.float64), (COMPILED, np.float32)):
        outs = [np.empty(shape, dtype, order="F") for shape in (h.shape, a.shape, h.shape)]
        marks, single = SequenceMarks.of_layout(layout), [matrix.astype(dtype) for matrix in (h, a)]
        kernels.crf_gradient(marks, labels, *single, *outs[:2])
        kernels.viterbi(marks, *single, outs[2])
        results.append(outs)
    for plain, compiled in zip(*results):
        np.testing.assert_allclose(compiled, plain, atol=1e-4)


def tagger(precision="double", recurrent=True):
    """Words to scores of labels, by a table and, if recurrent, a loop; J is the CRF, Y its best path."""
    network = Network(precision, threads=1)
    network.add("SparseInput", "x", rows=5)
    network.add("SparseInput", "labels", rows=LABELS)
    network.add("Parameter", "E", rows=4, cols=5)
    top = network.add("LookupTable", "e", "E", "x")
    if recurrent:
        past = network.add_node("PastValue", "past", [None], {"rows": 4})
        network.add("Parameter", "R", rows=4, cols=4)
        top = network.add("Plus", "sum", top, network.add("Times", "again", "R", past))
    top = network.add("Tanh", "h", top)
    if recurrent:
        network.connect("past", "h")
    network.add("Parameter", "W", rows=LABELS, cols=4)
    network.add("Times", "H", "W", top)
    transitions = network.add_node("Parameter", "A", [], {"rows": 0, "cols": 0})  # the CRF settles its size
    network.add("CRF", "J", "labels", "H", "A")
    network.initialise(transitions)
    network.add("SequenceDecoder", "Y", "H", "A")
    network.add("ErrorPrediction", "errors", "labels", "Y")
    return randomise(network)


def minibatch(layout, seed=2):
    rng = np.random.default_rng(seed)
    words, labels = (rng.integers(0, size, (1, layout.num_columns)).astype(np.int32) for size in (5, LABELS))
    for numbers in (words, labels):
        numbers[:, layout.gaps.reshape(-1)] = -1
    return {"x": Indicators(words, 5), "labels": Indicators(labels, LABELS)}


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS[:3], ids=["one", "ragged", "in rows"])
def test_gradients_in_and_out_of_loops(recurrent, layout):
    comparisons = check_gradients(tagger(recurrent=recurrent), "J", minibatch(layout), layout=layout)
    assert len(comparisons) == 3 + recurrent
    for comparison in comparisons:
        assert comparison.error < 1e-6, comparison


@pytest.mark.parametrize("precision", ["float", "double"])
def test_parallel_sequences_are_what_each_is_alone(precision):
    network, layout = tagger(precision), LAYOUTS[1]
    engine, together = Engine(network, ["J", "Y", "errors"]), minibatch(layout)
    engine.forward(together, training=True, criterion="J", layout=layout)
    whole = [engine.value(name).copy() for name in ("J", "Y", "errors")]
    engine.backward("J")
    gradients = {node.name: engine.gradient(node.name).copy() for node in network.parameters()}
    total, errors, sums = 0.0, 0.0, dict.fromkeys(gradients, 0.0)
    for columns in pieces(layout):
        alone = {name: matrix[:, np.array(columns)] for name, matrix in together.items()}
        engine.forward(alone, training=True, criterion="J", layout=SequenceLayout.of_lengths([len(columns)]))
        total, errors = total + engine.value("J").item(), errors + engine.value("errors").item()
        np.testing.assert_array_equal(whole[1][:, columns], engine.value("Y"))
        engine.backward("J")
        sums = {name: one + engine.gradient(name) for name, one in sums.items()}
    assert whole[0].item() == pytest.approx(total, rel=1e-5)
    assert whole[2].item() == errors
    assert not whole[1][:, layout.gaps.reshape(-1)].any()
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, sums[name], rtol=1e-4, atol=1e-5)


def test_labels_as_matrix_and_as_numbers():
    network, layout = tagger(), LAYOUTS[1]
    engine, matrices = Engine(network, ["J"]), minibatch(layout)
    values = []
    for labels in (matrices["labels"], np.asarray(matrices["labels"])):
        engine.forward({**matrices, "labels": labels}, layout=layout)
        values.append(engine.value("J").item())
    assert values[0] == values[1]


def test_a_frame_without_a_label():
    layout = LAYOUTS[0]
    matrices = minibatch(layout)
    matrices["labels"].numbers[0, 2] = -1
    with pytest.raises(ModelError, match=r"node 'J' \(CRF\): no label in column 2; expected one in every frame"):
        Engine(tagger(), ["J"]).forward(matrices, layout=layout)
