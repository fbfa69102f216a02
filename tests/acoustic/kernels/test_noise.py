"""Noise-contrastive estimation: compiled kernels against plain ones, gradients, modes of evaluation, bad labels."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients
from acoustic.kernels.arrays.word import NoiseLabels
from acoustic.kernels.backend import Backend
from acoustic.kernels.compiled.elementwise import CompiledKernels
from acoustic.network.network import Network
from readers.errors import ModelError
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.kernels.test_word import PLAIN, WORDS, parameter, words_of
from tests.acoustic.nodes.examples.words import noise_contrast, noise_labels, noise_softmax, noise_unnormalized


def noise_of(seed, words, number, columns):
    rng = np.random.default_rng(seed)
    real = rng.random(columns) < 0.8
    numbers = np.where(real, rng.integers(0, words, (number + 1, columns)), 0)
    return NoiseLabels(numbers, np.where(real, rng.normal(size=numbers.shape), 0), real)


@pytest.mark.parametrize(("dim", "words", "number", "columns"), [(3, 7, 2, 5), (1, 2, 1, 1), (40, 50, 30, 70)])
@pytest.mark.parametrize("threads", [1, 3])
def test_compiled_noise_kernels_are_the_plain_ones(dim, words, number, columns, threads):
    rng, labels = np.random.default_rng(1), noise_of(2, words, number, columns)
    h, weight, bias = (
        np.asfortranarray(rng.normal(size=shape), np.float32) for shape in ((dim, columns), (dim, words), (1, words))
    )
    kernels = Backend("float", threads=threads).kernels
    assert isinstance(kernels, CompiledKernels)
    margins = PLAIN.noise_margins(labels, h, weight, bias)
    np.testing.assert_allclose(kernels.noise_margins(labels, h, weight, bias), margins, rtol=1e-4, atol=1e-5)
    errors = np.asarray(rng.normal(size=margins.shape) * labels.real, np.float32)
    first, second = (np.empty_like(h) for _ in range(2))
    PLAIN.noise_hidden_gradient(labels, errors, weight, 0.5, first)
    kernels.noise_hidden_gradient(labels, errors, weight, 0.5, second)
    np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-4)
    for begin, end in ((0, words), (1, max(1, words - 1))):  # whole, and a part of the columns
        place = np.where(labels.real, labels.words - begin, -1)
        first, second = (np.full((dim, end - begin), np.nan, np.float32, order="F") for _ in range(2))
        PLAIN.noise_weight_gradient(errors, h, 0.5, place, first)
        kernels.noise_weight_gradient(errors, h, 0.5, place, second)
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-4)


def noise_network(recurrent, precision="double", mode="none"):
    network = Network(precision, threads=1)
    network.add("SparseInput", "x", rows=WORDS)
    network.add("Input", "labels", rows=8)
    below = network.add("LookupTable", "e", parameter(network, "E", 3, WORDS), "x")
    if recurrent:
        past = network.add_node("PastValue", "past", [None], {"rows": 3, "defaultHiddenActivity": 0.1})
        below = network.add("Plus", "sum", below, network.add("Times", "again", parameter(network, "R", 3, 3), past))
    network.add("Sigmoid", "h", below)
    if recurrent:
        network.connect("past", "h")
    network.add("NCE", "ce", "labels", "h", parameter(network, "W", 3, WORDS), parameter(network, "b", 1, WORDS),
                evalMode=mode)  # fmt: skip
    return network


def noise_matrices(layout, seed=2):
    gaps = np.flatnonzero(layout.gaps.reshape(-1))
    labels = noise_labels(WORDS)(np.random.default_rng(seed), (8, layout.num_columns))
    labels[:, gaps] = 0
    return {"x": words_of(1, 1, layout.num_columns, gaps), "labels": np.asfortranarray(labels)}


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("lengths", [[5], [4, 2, 3]], ids=str)
def test_noise_contrastive_gradients_in_and_out_of_loops(recurrent, lengths):
    layout, network = SequenceLayout.of_lengths(lengths), noise_network(recurrent)
    comparisons = check_gradients(network, "ce", noise_matrices(layout), layout=layout)
    assert len(comparisons) == 3 + recurrent
    for comparison in comparisons:
        assert comparison.error < 1e-6, comparison


@pytest.mark.parametrize("mode", ["none", "softmax", "unnormalized"])
def test_noise_contrastive_values_ignore_gaps_and_depend_on_the_mode_in_evaluation_only(mode):
    layout = SequenceLayout.of_lengths([4, 2])
    matrices, real = noise_matrices(layout), ~layout.gap_columns
    network = noise_network(False, mode=mode)
    engine, values = Engine(network, ["ce", "h"]), {}
    for training in (False, True):
        engine.forward(matrices, training=training, layout=layout)
        values[training] = engine.value("ce").item()
    arguments = matrices["labels"][:, real], engine.value("h")[:, real], network["W"].value, network["b"].value
    of_mode = {"none": noise_contrast, "softmax": noise_softmax, "unnormalized": noise_unnormalized}
    assert values[True] == pytest.approx(noise_contrast(*arguments).item(), rel=1e-12)
    assert values[False] == pytest.approx(of_mode[mode](*arguments).item(), rel=1e-12)


@pytest.mark.parametrize(
    ("row", "change"), [(0, -1), (0, WORDS), (2, 0.5), (2, WORDS), (1, 0.1), (3, -0.1), (3, np.inf), (3, np.nan)]
)
def test_noise_labels_that_are_not_words_and_logs_are_refused(row, change):
    layout = SequenceLayout.of_lengths([3])
    engine, matrices = Engine(noise_network(False), ["ce"]), noise_matrices(layout)
    engine.forward(matrices)
    matrices["labels"][row, 1] = change
    with pytest.raises(ModelError, match="column 1; expected word, log probability"):
        engine.forward(matrices)


def test_true_probabilities_are_where_the_expected_gradient_vanishes():
    """Words and noise words as often as their probabilities p and q say; the scores are ln p, whatever q is."""
    p, q, h = np.array([4, 2, 1, 1]) / 8, np.array([1, 3, 2, 2]) / 8, np.ones((1, 8))
    words, noise = np.repeat(np.arange(4), (8 * p).astype(int)), np.repeat(np.arange(4), (8 * q).astype(int))
    labels = np.empty((6, 8))
    labels[0], labels[1] = words, np.log(q[words])
    for k in (1, 2):
        labels[2 * k], labels[2 * k + 1] = noise, -np.log(q[noise])
    network = Network("double", threads=1)
    network.add("Input", "labels", rows=6)
    network.add("Input", "h", rows=1)
    for name, value in (("W", np.full((1, 4), 0.5)), ("b", np.log(p)[None] - 0.5)):
        network.add("Parameter", name, rows=1, cols=4)
        network.set_value(name, np.asfortranarray(value))
    network.add("NCE", "ce", "labels", "h", "W", "b")
    engine = Engine(network, ["ce"])
    for shift, vanishes in ((0.0, True), (0.1, False)):
        network.set_value("b", np.asfortranarray(np.log(p)[None] - 0.5 + shift))
        engine.forward({"labels": np.asfortranarray(labels), "h": h}, training=True)
        engine.backward("ce")
        assert (np.abs(engine.gradient("b")) < 1e-12).all() == vanishes
