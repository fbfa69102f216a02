"""The objective of lattice-free MMI and its gradient against all paths, dense matrices and plain Python."""

import numpy as np
import pytest

from acoustic.kernels.lattice_free import denominator as denominator_module
from acoustic.kernels.lattice_free import denominator_loops as loops
from acoustic.kernels.lattice_free import numerator_loops
from acoustic.kernels.lattice_free.denominator import denominator, tables_of
from acoustic.kernels.lattice_free.objective import LatticeFree, graph_arrays
from acoustic.runtime.lanes import LANES
from acoustic.runtime.thread_team import ThreadTeam
from readers.minibatches.supervision import NumeratorGraph
from tests.acoustic.kernels.lattice_free import graphs

TEAM = ThreadTeam(1)


def alone(rng, graph, count):
    """Outputs of one sequence, and arguments of `denominator` for it."""
    x = np.asfortranarray(rng.standard_normal((graph.num_outputs, count)))
    return x, (graph, x.T, np.array([0]), np.array([count]), 1)


@pytest.mark.parametrize("leaky", [0.0, 1e-5, 0.3])
def test_denominator_is_the_sum_over_all_paths(leaky):
    rng = np.random.default_rng(1)
    for num_states, num_arcs, count in ((1, 1, 3), (2, 5, 3), (3, 6, 3), (4, 9, 2), (3, 5, 1)):
        graph = graphs.denominator_graph(rng, num_states, 4, num_arcs)
        x, arguments = alone(rng, graph, count)
        gradient = np.zeros_like(x)
        (value,) = denominator(*arguments, leaky, TEAM, gradient.T)
        total, posteriors = graphs.denominator_paths(graph, x, leaky)
        assert value == pytest.approx(np.log(total), abs=1e-10)
        np.testing.assert_allclose(gradient, posteriors, atol=1e-10)


@pytest.mark.parametrize("leaky", [0.0, 1e-5, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_denominator_equals_dense_matrices(leaky, seed):
    rng = np.random.default_rng(seed)
    graph = graphs.denominator_graph(rng, 30, 11, 200)
    x, arguments = alone(rng, graph, 17)
    gradient = np.zeros_like(x)
    (value,) = denominator(*arguments, leaky, TEAM, gradient.T)
    expected, posteriors = graphs.dense_denominator(graph, x, leaky)
    assert value == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(gradient, posteriors, atol=1e-10)
    np.testing.assert_allclose(gradient.sum(axis=0), 1, atol=1e-12)


@pytest.mark.parametrize("frames", [False, True])
def test_numerator_is_the_sum_over_all_paths(frames):
    rng = np.random.default_rng(3)
    for count in (1, 2, 4):
        graph = graphs.frame_graph(rng, count, 2, 5) if frames else graphs.numerator_graph(rng, 3, 5, 6)
        x = np.asfortranarray(rng.standard_normal((5, count)))
        total, posteriors = graphs.numerator_paths(graph, x)
        found = numerator_loops_of(graph, x)
        assert found[0] == (numerator_loops.FINE if total else numerator_loops.NO_PATH)
        if total:
            assert found[1] == pytest.approx(np.log(total), abs=1e-10)
        np.testing.assert_allclose(found[2], posteriors, atol=1e-10)


def numerator_loops_of(graph, x):
    """(status, logarithm, posteriors) of one sequence."""
    gradient = np.zeros_like(x)
    place = 0, 1, x.shape[1]
    return *numerator_loops.forward_backward(x.T, place, *graph_arrays(graph), 1.0, gradient.T, place), gradient


@pytest.mark.parametrize("frames", [False, True])
def test_numerator_posteriors_sum_to_one(frames):
    rng = np.random.default_rng(4)
    graph = graphs.frame_graph(rng, 40, 5, 20) if frames else graphs.numerator_graph(rng, 12, 20, 50)
    x = np.asfortranarray(30 * rng.standard_normal((20, 40)))
    status, _, posteriors = numerator_loops_of(graph, x)
    assert status == numerator_loops.FINE
    np.testing.assert_allclose(posteriors.sum(axis=0), 1, atol=1e-10)


def test_a_state_left_behind_is_not_used_later():
    """State 1 has no arc in frame 1, but in frame 2: a path cannot wait there."""
    states, outputs = np.array([0, 0, 2, 1, 3], np.int32), np.zeros(5, np.int32)
    to_state, ends = np.array([1, 2, 3, 4, 4], np.int32), np.full(5, -np.inf, np.float32)
    initial, final = ends.copy(), ends.copy()
    initial[0] = final[4] = 0
    graph = NumeratorGraph(
        5, states, to_state, outputs, np.zeros(5, np.float32), initial, final, np.array([0, 2, 3, 5], np.int32)
    )
    status, value, posteriors = numerator_loops_of(graph, np.zeros((1, 3), order="F"))
    assert (status, value) == (numerator_loops.FINE, 0)
    np.testing.assert_allclose(posteriors, 1)


COUNTS = (7, 3, 5, 9, 1, 4, 4)


@pytest.mark.parametrize("frames", [False, True])
@pytest.mark.parametrize("num_slots", [1, 3, 7])
def test_sequences_in_slots_are_what_each_is_alone(num_slots, frames):
    rng = np.random.default_rng(5)
    graph = graphs.denominator_graph(rng, 8, 6, 30)
    sequences, steps = graphs.placed(rng, COUNTS, num_slots, graph, frames)
    x = np.asfortranarray(rng.standard_normal((6, steps * num_slots)))
    together = LatticeFree(sequences, num_slots, 6)
    gradient = np.full_like(x, 7)
    terms = together.compute(x, 1e-3, TEAM, gradient)
    supervised = np.zeros(x.shape[1], bool)
    for k, one in enumerate(sequences):
        columns = together.slice_of(k)
        supervised[columns] = True
        own = np.asfortranarray(x[:, columns])
        single = np.zeros_like(own)
        (term,) = zip(*LatticeFree([one._replace(slot=0, step=0)], 1, 6).compute(own, 1e-3, TEAM, single))
        assert (terms.numerator[k], terms.denominator[k]) == term[:2]
        np.testing.assert_array_equal(gradient[:, columns], single)
        expected, posteriors = graphs.dense_denominator(graph, own, 1e-3)
        assert terms.denominator[k] == pytest.approx(expected, abs=1e-10)
        status, _, found = numerator_loops_of(one.supervision.numerator, own)
        assert terms.has_path[k] == (status == numerator_loops.FINE)
        np.testing.assert_allclose(single, terms.has_path[k] * (posteriors - found), atol=1e-10)
    assert not gradient[:, ~supervised].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_number_of_threads_gives_the_same_bits(dtype):
    rng = np.random.default_rng(6)
    graph = graphs.denominator_graph(rng, 20, 9, 80)
    sequences, steps = graphs.placed(rng, rng.integers(1, 12, 37), 37, graph)
    x = np.asfortranarray(rng.standard_normal((9, steps * 37)), dtype=dtype)
    results = []
    for threads in (1, 2, 3):
        gradient = np.empty_like(x)
        terms = LatticeFree(sequences, 37, 9).compute(x, 1e-5, ThreadTeam(threads), gradient)
        results.append((terms.numerator, terms.denominator, gradient))
    for other in results[1:]:
        for one, same in zip(results[0], other):
            np.testing.assert_array_equal(one, same)


def test_single_precision():
    rng = np.random.default_rng(7)
    graph = graphs.denominator_graph(rng, 200, 40, 1500)
    sequences, steps = graphs.placed(rng, [50] * 20, 20, graph)
    x = np.asfortranarray(5 * rng.standard_normal((40, steps * 20)))
    results = []
    for dtype in (np.float64, np.float32):
        gradient = np.empty(x.shape, dtype, order="F")
        chain = LatticeFree(sequences, 20, 40)
        results.append((chain.compute(x.astype(dtype, order="F"), 1e-5, TEAM, gradient), gradient))
    (exact, exact_gradient), (single, gradient) = results
    np.testing.assert_allclose(single.denominator, exact.denominator, rtol=1e-6)
    np.testing.assert_allclose(single.numerator, exact.numerator, rtol=1e-6)
    np.testing.assert_allclose(gradient, exact_gradient, atol=2e-5)


@pytest.mark.parametrize("shift", [-1e4, 0, 1e4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_outputs_do_not_overflow(shift, dtype):
    """Adding a number to all outputs adds it to the logarithms; outputs far apart leave one path."""
    rng = np.random.default_rng(8)
    graph = graphs.denominator_graph(rng, 50, 10, 300)
    x = np.asfortranarray(100 * rng.standard_normal((10, 30)) + shift, dtype=dtype)
    gradient = np.zeros_like(x)
    (value,) = denominator(graph, x.T, np.array([0]), np.array([30]), 1, 1e-5, TEAM, gradient.T)
    (plain,) = denominator(graph, x.T.astype(np.float64) - shift, np.array([0]), np.array([30]), 1, 1e-5, TEAM)
    assert value == pytest.approx(plain + 30 * shift, rel=1e-6)
    np.testing.assert_allclose(gradient.sum(axis=0), 1, atol=1e-5)


def test_outputs_that_are_not_finite_touch_their_sequence_only():
    rng = np.random.default_rng(9)
    graph = graphs.denominator_graph(rng, 8, 6, 30)
    sequences, steps = graphs.placed(rng, (5, 5, 5), 3, graph)
    x = np.asfortranarray(rng.standard_normal((6, steps * 3)), dtype=np.float32)
    chain, gradient = LatticeFree(sequences, 3, 6), np.empty_like(x)
    plain = chain.compute(x, 1e-5, TEAM, gradient)
    for odd in (np.nan, np.inf):
        worse, other = x.copy(order="F"), np.empty_like(x)
        worse[2, 4] = odd  # of the second sequence
        terms = chain.compute(worse, 1e-5, TEAM, other)
        assert np.isnan(terms.denominator).tolist() == [False, True, False]
        for k in (0, 2):
            assert terms.denominator[k] == plain.denominator[k]
            np.testing.assert_array_equal(other[:, chain.slice_of(k)], gradient[:, chain.slice_of(k)])


def plain_or_compiled(function, plain):
    return getattr(function, "py_func", function) if plain else function


def test_compiled_denominator_equals_plain_python():
    rng = np.random.default_rng(10)
    graph = graphs.denominator_graph(rng, 3, 4, 7)
    tables, x = tables_of(graph), rng.standard_normal((6, 4))
    firsts, counts = np.zeros((2, LANES), np.int64)
    firsts[1], counts[:2] = 1, (3, 2)
    place, leak, runs = (firsts, counts, 2), 0.1 * tables.initial, len(tables.run_output)
    results = []
    for plain in (False, True):
        begin, forward, backward = (
            plain_or_compiled(one, plain) for one in (loops.begin, loops.forward, loops.backward)
        )
        alpha, after, run_beta, posteriors = (np.zeros((size, LANES)) for size in (3, 3, runs, 4))
        kept = np.zeros((3, runs, LANES)), np.zeros((3, 4, LANES)), np.zeros((3, LANES))
        logs, gradient = np.zeros(LANES), np.zeros((6, 4))
        begin(alpha, tables.initial, leak)
        forward(x, place, tables.forward_tables(float), leak, (alpha, after), np.zeros((LANES, 4)), kept, 0, logs)
        backward(place, tables.backward_tables(float), leak, (after, run_beta), kept, 0, posteriors, gradient)
        results.append((logs, gradient))
    for one, same in zip(*results):
        np.testing.assert_allclose(one, same, rtol=1e-12)


@pytest.mark.parametrize("frames", [False, True])
def test_compiled_numerator_equals_plain_python(frames):
    rng = np.random.default_rng(11)
    graph = graph_arrays(graphs.frame_graph(rng, 3, 2, 4) if frames else graphs.numerator_graph(rng, 3, 4, 6))
    x, z = rng.standard_normal((2, 6, 4))
    place, results = (1, 2, 3), []
    for plain in (False, True):
        forward_backward, cross_entropy, regularise = (
            plain_or_compiled(getattr(numerator_loops, name), plain)
            for name in ("forward_backward", "cross_entropy", "regularise")
        )
        gradients = np.zeros((3, 6, 4))
        found = forward_backward(x, place, *graph, 1.0, gradients[0], place)
        cross = cross_entropy(x, z, place, *graph, gradients[1])
        results.append((found, cross, regularise(x, place, 0.1, 0.5, 0.2, gradients[2]), gradients))
    for one, same in zip(*results):
        np.testing.assert_allclose(one, same, rtol=1e-12)


@pytest.mark.parametrize("most", [1, 1000, 2500])
def test_long_sequences_are_computed_in_segments(monkeypatch, most):
    rng = np.random.default_rng(12)
    graph = graphs.denominator_graph(rng, 8, 6, 30)
    sequences, steps = graphs.placed(rng, (7, 13, 5, 9, 1), 3, graph)
    x = np.asfortranarray(rng.standard_normal((6, steps * 3)))
    chain, results = LatticeFree(sequences, 3, 6), []
    for bytes_kept in (1 << 20, most * LANES):
        monkeypatch.setattr(denominator_module, "MOST_KEPT", bytes_kept)
        gradient = np.empty_like(x)
        results.append((*chain.compute(x, 0.01, TEAM, gradient), gradient, chain.compute(x, 0.01, TEAM).denominator))
    for one, same in zip(*results):
        np.testing.assert_array_equal(one, same)
