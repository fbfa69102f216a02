"""Numbered words: products, criteria and updates that never make the one-hot matrix, against those that do."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients
from acoustic.kernels.arrays.elementwise import ArrayKernels
from acoustic.kernels.arrays.word import ClassLabels
from acoustic.kernels.compiled.elementwise import CompiledKernels
from acoustic.network.network import Network
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import RULES, AdaGrad
from acoustic.training.update import Updater
from readers.errors import ModelError
from readers.minibatches.indicators import Indicators
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.nodes.examples.words import class_cross_entropy, class_labels

WORDS, CLASSES = 12, (2, 5, 1, 4)
PLAIN, COMPILED = ArrayKernels(np), CompiledKernels()


def words_of(seed, blocks, columns, gaps=()):
    numbers = np.random.default_rng(seed).integers(0, WORDS, (blocks, columns)).astype(np.int32)
    numbers[:, list(gaps)] = -1
    return Indicators(numbers, WORDS)


def parameter(network, name, rows, cols):
    return network.add("Parameter", name, rows=rows, cols=cols, initValueScale=20)


def lookup_network(precision, product, blocks=2, threads=1):
    """Words to a table, or through a product, to a full softmax over the words."""
    network = Network(precision, threads=threads)
    network.add("SparseInput", "x", rows=blocks * WORDS)
    network.add("SparseInput", "y", rows=WORDS)
    if product == "Times":
        below = network.add("Times", "below", parameter(network, "E", 3 * blocks, blocks * WORDS), "x")
    else:
        below = network.add("LookupTable", "below", parameter(network, "E", 3, WORDS), "x")
    network.add("Tanh", "h", below)
    network.add("Times", "z", parameter(network, "W", WORDS, 3 * blocks), "h")
    network.add("CEWithSM", "ce", "y", "z")
    network.add("ErrorPrediction", "errors", "y", "z")
    return network


def gradients(network, matrices, criterion="ce", roots=("ce", "errors"), **settings):
    engine = Engine(network, roots)
    engine.forward(matrices, training=True, **settings)
    values = [engine.value(name).copy() for name in roots]
    engine.backward(criterion)
    return values, {node.name: engine.gradient(node.name).copy() for node in network.parameters()}


@pytest.mark.parametrize("precision", ["float", "double"])
@pytest.mark.parametrize("product", ["Times", "LookupTable"])
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("threads", [1, 2])
def test_numbers_do_what_matrices_do(precision, product, blocks, threads):
    network = lookup_network(precision, product, blocks, threads)
    x, y = words_of(1, blocks, 70, gaps=[4]), words_of(2, 1, 70)
    sparse = gradients(network, {"x": x, "y": y})
    dense = gradients(network, {"x": np.asarray(x), "y": np.asarray(y)})
    for one, other in zip(sparse[0], dense[0]):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    for name, gradient in dense[1].items():
        np.testing.assert_allclose(sparse[1][name], gradient, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("product", ["Times", "LookupTable"])
def test_gradients_by_numbers(product):
    network = lookup_network("double", product)
    for comparison in check_gradients(network, "ce", {"x": words_of(1, 2, 9), "y": words_of(2, 1, 9)}):
        assert comparison.error < 1e-6, comparison


def test_the_matrix_is_never_made(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a one-hot matrix was made")

    monkeypatch.setattr(Indicators, "__array__", refuse)
    gradients(lookup_network("float", "LookupTable"), {"x": words_of(1, 2, 9), "y": words_of(2, 1, 9)})


def test_other_users_of_an_input_get_the_matrix():
    network = lookup_network("double", "LookupTable", blocks=1)
    network.add("SumElements", "count", "x")
    engine = Engine(network, ["ce", "count", "x"])
    x = words_of(1, 1, 9, gaps=[2, 3])
    engine.forward({"x": x, "y": words_of(2, 1, 9)})
    assert engine.value("count") == 7
    np.testing.assert_array_equal(engine.value("x"), np.asarray(x))


def test_gaps_in_full_softmax_over_numbers():
    layout = SequenceLayout.of_lengths([4, 2])
    gaps = np.flatnonzero(layout.gap_columns)
    network = lookup_network("double", "LookupTable", blocks=1)
    x, y = words_of(1, 1, 8, gaps), words_of(2, 1, 8, gaps)
    values, found = gradients(network, {"x": x, "y": y}, layout=layout)
    real = np.flatnonzero(~layout.gap_columns)
    alone, expected = gradients(network, {"x": x[:, real], "y": y[:, real]})
    np.testing.assert_allclose(values, alone)
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[name], gradient, atol=1e-12)


# ---- classes


def class_network(precision="double", recurrent=False, threads=1):
    network = Network(precision, threads=threads)
    network.add("SparseInput", "x", rows=WORDS)
    network.add("Input", "labels", rows=4)
    below = network.add("LookupTable", "e", parameter(network, "E", 3, WORDS), "x")
    if recurrent:
        past = network.add_node("PastValue", "past", [None], {"rows": 3, "defaultHiddenActivity": 0.1})
        again = network.add("Times", "again", parameter(network, "R", 3, 3), past)
        below = network.add("Plus", "sum", below, again)
    network.add("Sigmoid", "h", below)
    if recurrent:
        network.connect("past", "h")
    network.add("Times", "Q", parameter(network, "C", len(CLASSES), 3), "h")
    network.add("ClassBasedCrossEntropyWithSoftmax", "ce", "labels", "h", parameter(network, "W", 3, WORDS), "Q")
    return network


def labels_of(seed, columns, gaps=()):
    labels = np.asfortranarray(class_labels(*CLASSES)(np.random.default_rng(seed), (4, columns)))
    labels[:, list(gaps)] = 0
    return labels


def test_class_probabilities_are_a_distribution():
    """exp(-v) over all words adds up to 1."""
    network = class_network()
    engine = Engine(network, ["ce"])
    bounds = np.cumsum([0, *CLASSES])
    total = 0.0
    for word in range(WORDS):
        word_class = int(np.searchsorted(bounds, word, side="right")) - 1
        labels = np.array([[word, word_class, bounds[word_class], bounds[word_class + 1]]], float).T
        engine.forward({"x": words_of(3, 1, 1), "labels": labels})
        total += np.exp(-engine.value("ce").item())
    assert total == pytest.approx(1)


@pytest.mark.parametrize(
    ("row", "change"),
    [(0, -1), (0, WORDS), (1, -1), (1, len(CLASSES)), (2, -1), (3, WORDS + 1), (3, -1), (3, 0)],
)
def test_labels_that_lead_outside_the_matrices_are_refused(row, change):
    """word, class, first word of the class, and the word behind its last one."""
    engine = Engine(class_network(), ["ce"])
    labels = labels_of(0, 3)
    engine.forward({"x": words_of(0, 1, 3), "labels": labels})
    labels[row, 1] = change
    with pytest.raises(ModelError, match="column 1"):
        engine.forward({"x": words_of(0, 1, 3), "labels": labels})


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("lengths", [[5], [4, 2, 3]], ids=str)
def test_class_gradients_in_and_out_of_loops(recurrent, lengths):
    layout = SequenceLayout.of_lengths(lengths)
    gaps = np.flatnonzero(layout.gaps.reshape(-1))
    columns = layout.num_columns
    matrices = {"x": words_of(1, 1, columns, gaps), "labels": labels_of(2, columns, gaps)}
    network = class_network(recurrent=recurrent)
    comparisons = check_gradients(network, "ce", matrices, layout=layout)
    assert len(comparisons) == 3 + recurrent
    for comparison in comparisons:
        assert comparison.error < 1e-6, comparison


def test_a_table_that_is_the_output_matrix_too():
    """Both give columns of one gradient; neither is all of it, so that it is a whole matrix, in updates as well."""
    network = Network("double", threads=1)
    network.add("SparseInput", "x", rows=WORDS)
    network.add("Input", "labels", rows=4)
    network.add("Tanh", "h", network.add("LookupTable", "e", parameter(network, "E", 3, WORDS), "x"))
    network.add("Times", "Q", parameter(network, "C", len(CLASSES), 3), "h")
    network.add("CBCEWithSM", "ce", "labels", "h", "E", "Q")
    matrices = {"x": words_of(1, 1, 9), "labels": labels_of(2, 9)}
    for comparison in check_gradients(network, "ce", matrices):
        assert comparison.error < 1e-6, comparison
    before, (_, found) = network["E"].value.copy(), gradients(network, matrices, roots=("ce",))
    engine = Engine(network, ["ce"])
    updater = Updater(network, TrainingOptions(max_epochs=1, learning_rates_per_sample=(0.1,)))
    engine.forward(matrices, training=True)
    updater.begin(0.1, 0.0, 9)
    engine.backward("ce", updater)
    np.testing.assert_allclose(network["E"].value, before - 0.1 * found["E"], atol=1e-14)


def test_class_criterion_ignores_what_gaps_hold():
    layout = SequenceLayout.of_lengths([4, 2])
    x, labels = words_of(1, 1, 8), labels_of(2, 8)
    network = class_network(recurrent=True)
    first = gradients(network, {"x": x, "labels": labels}, roots=("ce",), layout=layout)
    labels[:, layout.gap_columns] = 0
    second = gradients(network, {"x": x, "labels": labels}, roots=("ce",), layout=layout)
    np.testing.assert_array_equal(first[0], second[0])
    for name, gradient in first[1].items():
        np.testing.assert_array_equal(gradient, second[1][name])


def test_parallel_sequences_add_up():
    network, lengths = class_network(recurrent=True), [4, 2, 3]
    layout = SequenceLayout.of_lengths(lengths)
    x, labels = words_of(1, 1, 12), labels_of(2, 12)
    value, together = gradients(network, {"x": x, "labels": labels}, roots=("ce",), layout=layout)
    total, sums = 0.0, dict.fromkeys(together, 0.0)
    for slot, length in enumerate(lengths):
        mine = np.arange(length) * len(lengths) + slot
        alone = {"x": x[:, mine], "labels": np.asfortranarray(labels[:, mine])}
        part, found = gradients(network, alone, roots=("ce",), layout=SequenceLayout.of_lengths([length]))
        total += part[0]
        sums = {name: sums[name] + gradient for name, gradient in found.items()}
    np.testing.assert_allclose(value[0], total)
    for name, gradient in together.items():
        np.testing.assert_allclose(gradient, sums[name], atol=1e-12)


@pytest.mark.parametrize(
    ("column", "fault"),
    [
        ([0, 0, 0, 0], "without a frame"),
        ([5, 1, 0, 2], "outside its class"),
        ([1, 9, 0, 2], "no class"),
        ([12, 3, 8, 13], "no word"),
    ],
)
def test_labels_that_cannot_be(column, fault):
    network = class_network()
    labels = labels_of(1, 3)
    labels[:, 1] = column
    with pytest.raises(ModelError, match=rf"labels \[{column[0]}, .*\] in column 1; expected word, class"):
        Engine(network, ["ce"]).forward({"x": words_of(1, 1, 3), "labels": labels})


@pytest.mark.parametrize("gap", [False, True])
def test_compiled_class_kernels(gap):
    rng = np.random.default_rng(4)
    labels = ClassLabels(*np.ascontiguousarray(labels_of(5, 30, [2, 7] if gap else ()), np.int64))
    double = [np.asfortranarray(rng.standard_normal(shape)) for shape in ((9, 30), (9, WORDS), (4, 30))]
    single = [matrix.astype(np.float32) for matrix in double]
    columns = labels.touched(WORDS)
    place = np.searchsorted(columns, labels.first)
    results = []
    for kernels, (h, w, q) in ((PLAIN, double), (COMPILED, single)):
        loss = np.empty((1, 1), h.dtype)
        kernels.class_loss(labels, h, w, q, loss)
        errors = kernels.class_errors(labels, h, w)
        shapes = (h.shape, (9, len(columns)), q.shape, (9, 3))
        outs = [np.full(shape, np.nan, h.dtype, order="F") for shape in shapes]
        kernels.class_hidden_gradient(labels, errors, w, 0.5, outs[0])
        kernels.class_weight_gradient(labels, errors, h, 0.5, place, outs[1])
        kernels.class_weight_gradient(labels, errors, h, 0.5, place - 5, outs[3])
        np.testing.assert_allclose(outs[3], outs[1][:, 5:8], rtol=1e-6)  # a library may sum by the number of columns
        kernels.class_posterior_gradient(labels, q, 0.5, outs[2])
        results.append([loss, errors, *outs])
    if not gap:
        rows = np.array([labels.word, labels.word_class, labels.first, labels.behind])
        expected = class_cross_entropy(rows, *(single[k].astype(float) for k in range(3)))
        np.testing.assert_allclose(results[0][0], expected, rtol=1e-5)
    for plain, compiled in zip(*results):
        np.testing.assert_allclose(compiled, plain, rtol=2e-5, atol=1e-5)


def test_threads_share_the_words(monkeypatch):
    """Two threads learn what one does; every shared loop is made to think that it has enough to do."""
    monkeypatch.setattr("acoustic.kernels.compiled.operands.SPLIT_FROM", 1)
    results = []
    for threads in (1, 2):
        network = class_network("float", recurrent=True, threads=threads)
        engine = Engine(network, ["ce"])
        updater = Updater(network, TrainingOptions(max_epochs=1, learning_rates_per_sample=(0.1,), rule=AdaGrad()))
        for step in range(3):
            layout = SequenceLayout.of_lengths([4, 2, 3])
            matrices = {"x": words_of(step, 1, 12), "labels": labels_of(step, 12)}
            engine.forward(matrices, training=True, layout=layout)
            updater.begin(0.1, 0.9, 9, (step,))
            engine.backward("ce", updater)
        results.append({node.name: node.value for node in network.parameters()})
    for name, value in results[0].items():
        np.testing.assert_allclose(results[1][name], value, rtol=2e-4, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("spread", [3, 2000])  # of the latter, most exponentials are 0 or infinite
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_compiled_criteria_over_numbers(rows, spread):
    rng = np.random.default_rng(rows)
    z = np.asfortranarray(rng.normal(0, spread, (rows, 21)))
    numbers = rng.integers(0, rows, 21).astype(np.int32)
    numbers[[3, 8]] = -1
    labels = np.asarray(Indicators(numbers[None], rows), np.float64)
    results = []
    for kernels, matrix in ((PLAIN, z), (COMPILED, z.astype(np.float32))):
        out, error, alone, errors = (
            np.full(shape, np.nan, matrix.dtype, order="F") for shape in ((1, 1), z.shape, (1, 1), (1, 1))
        )
        kernels.cross_entropy_numbers(numbers, matrix, out, error)
        kernels.cross_entropy_numbers(numbers, matrix, alone, None)
        kernels.count_errors_numbers(numbers, matrix, errors)
        results.append([out, error, alone, errors])
    expected = [np.empty((1, 1)), np.empty(z.shape, order="F"), np.empty((1, 1)), np.empty((1, 1))]
    PLAIN.cross_entropy_softmax(labels, z, expected[0], expected[1])
    PLAIN.cross_entropy_softmax(labels, z, expected[2], None)
    PLAIN.count_errors(labels, z, expected[3])
    for found in results:
        for one, other in zip(found, expected):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


# ---- updates


class Whole(Updater):
    """An updater that never takes columns alone."""

    takes_touched = False


def trained(updater_type, rule, momentum, steps=4, **options):
    network = class_network("double")
    engine = Engine(network, ["ce"])
    updater = updater_type(
        network, TrainingOptions(max_epochs=1, learning_rates_per_sample=(0.1,), rule=rule, **options)
    )
    for step in range(steps):
        engine.forward({"x": words_of(step, 1, 3), "labels": labels_of(step, 3)}, training=True)
        updater.begin(0.1, momentum, 3, (step,))
        engine.backward("ce", updater)
    return {node.name: node.value.copy() for node in network.parameters()}, updater


@pytest.mark.parametrize(
    ("name", "momentum", "options"),
    [
        ("none", 0.0, {}),
        ("none", 0.0, {"clipping_threshold": 0.01}),
        ("none", 0.0, {"clipping_threshold": 0.01, "clip_by_truncation": False}),
        ("adagrad", 0.9, {}),
        ("none", 0.9, {"l2_weight": 0.1}),
        ("rmsprop", 0.9, {}),
    ],
)
def test_updates_of_touched_columns_are_those_of_the_whole(name, momentum, options):
    settings = {"normalise": False} if name in ("adagrad", "rmsprop") else {}
    rule = {known.lower(): one for one in RULES.values() for known in one.names}[name](**settings)
    some, _ = trained(Updater, rule, momentum, **options)
    whole, _ = trained(Whole, rule, momentum, **options)
    for parameter_name, value in whole.items():
        np.testing.assert_allclose(some[parameter_name], value, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("cached", [1, 9, 17])
@pytest.mark.parametrize("name", ["none", "adagrad"])
def test_touched_columns_are_updated_in_parts_that_fit_the_cache(name, cached, monkeypatch):
    monkeypatch.setattr("acoustic.training.update.CACHED", cached)
    rule = RULES["none"]() if name == "none" else AdaGrad(normalise=False)
    some, _ = trained(Updater, rule, 0.0)
    whole, _ = trained(Whole, rule, 0.0)
    for parameter_name, value in whole.items():
        np.testing.assert_allclose(some[parameter_name], value, rtol=1e-12, atol=1e-14)


def test_momentum_rests_where_nothing_is_touched():
    rule = RULES["none"]()
    network = class_network("double")
    engine, before = Engine(network, ["ce"]), network["E"].value.copy()
    updater = Updater(network, TrainingOptions(max_epochs=1, learning_rates_per_sample=(0.1,), rule=rule))
    columns = [Indicators(np.array([[word]], np.int32), WORDS) for word in (3, 5)]
    velocities = []
    for step, x in enumerate(columns):
        engine.forward({"x": x, "labels": labels_of(step, 1)}, training=True)
        updater.begin(0.1, 0.9, 1, (step,))
        engine.backward("ce", updater)
        velocities.append(updater.state["E"]["velocity"].copy())
    moved = (network["E"].value != before).any(axis=0)
    assert np.flatnonzero(moved).tolist() == [3, 5]
    np.testing.assert_array_equal(velocities[0][:, 3], velocities[1][:, 3])
