"""The denominator graph equals sums over phone strings; its initial probabilities are average occupancies."""

import numpy as np
import pytest

from decoder.sequence_training.chain import denominator as module
from decoder.sequence_training.chain.denominator import build_denominator
from decoder.sequence_training.chain.outputs import ChainOutputs, monophone_outputs
from decoder.sequence_training.chain.phone_lm import PhoneLmOptions, estimate_phone_lm
from readers.errors import GraphError
from readers.htk.trees import DecisionTree, DecisionTrees
from readers.sources.chain import check_denominator
from tests.decoder.sequence_training.chain.graphs import (
    SEQUENCES,
    tied_outputs,
    weights_by_phone_strings,
    weights_of_graph,
)

OUTPUTS = {
    "monophones": lambda: monophone_outputs(["sil", "a", "b"]),
    "left": tied_outputs,
    "right": lambda: tied_outputs(left=False, right=True),
    "both": lambda: tied_outputs(right=True),
    "shared": lambda: tied_outputs(right=True, merged=True),
}


@pytest.mark.parametrize("extra", [0, 100])
@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("kind", OUTPUTS)
def test_equals_the_sum_over_phone_strings(kind, order, extra):
    outputs = OUTPUTS[kind]()
    options = PhoneLmOptions(order, min(order, 3), extra)
    model = estimate_phone_lm(SEQUENCES, options)
    graph = build_denominator(model, outputs)
    check_denominator(graph, kind)
    start = np.eye(graph.num_states)[0]
    for num_frames in (1, 2, 4):
        expected = weights_by_phone_strings(model, outputs, num_frames)
        found = weights_of_graph(graph, num_frames, start)
        assert found.keys() == expected.keys()
        for labels, mass in expected.items():
            assert found[labels] == pytest.approx(mass, rel=1e-5), labels


def test_states_with_equal_futures_are_merged():
    outputs = monophone_outputs(["sil", "a", "b"])
    model = estimate_phone_lm([[1, 2, 3, 1], [1, 3, 2, 1]] * 3)
    graph = build_denominator(model, outputs)
    # After `a b` and `b a` comes sil: histories (2, 3) and (3, 2) differ in their own phone, the final sil does not.
    assert graph.num_states == 1 + 1 + 2 + 2 + 1
    assert len(np.unique(graph.from_state * 100 + graph.output)) == len(graph.output)


def test_initial_probabilities_are_the_average_occupancy_of_100_frames():
    model = estimate_phone_lm(SEQUENCES)
    graph = build_denominator(model, tied_outputs())
    # The probability of the end is 1 minus that of all arcs; it is half of it for the start, which nothing stays in.
    matrix = np.zeros((graph.num_states, graph.num_states))
    np.add.at(matrix, (graph.from_state, graph.to_state), graph.probability.astype(float))
    matrix[0] *= 2
    current, total = np.eye(graph.num_states)[0], np.zeros(graph.num_states)
    for _ in range(100):
        total += current / 100
        current = current @ matrix
        current /= current.sum()
    np.testing.assert_allclose(graph.initial, total, rtol=1e-5)
    assert np.all(graph.initial > 0)


def test_a_state_far_from_the_start_has_initial_probability():
    phones = np.random.default_rng(0).integers(1, 40, size=150).tolist()
    graph = build_denominator(estimate_phone_lm([phones]), monophone_outputs([f"p{i}" for i in range(40)]))
    assert np.all(graph.initial > 0)
    assert graph.initial.sum() == pytest.approx(1)


def test_a_graph_that_is_too_large(monkeypatch):
    monkeypatch.setattr(module, "MOST_STATES", 5)
    with pytest.raises(GraphError, match="more than 5 states"):
        build_denominator(estimate_phone_lm(SEQUENCES), tied_outputs())


def test_outputs_that_trees_name_must_exist():
    outputs = tied_outputs()
    with pytest.raises(GraphError, match="'b_s3_2' is not an output"):
        type(outputs)([name for name in outputs.names if name != "b_s3_2"], outputs.states, outputs.trees)


def test_trees_of_models_with_three_states_are_refused():
    outputs = tied_outputs()
    trees = DecisionTrees(outputs.trees.questions, outputs.trees.trees | {("a", 4): DecisionTree((), "sil_s2")})
    with pytest.raises(GraphError, match="decision trees: 3 states of 'a'; expected 2, the first frame and further"):
        ChainOutputs(outputs.names, outputs.states, trees)
