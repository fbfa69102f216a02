"""Sums and estimates against plain twins; what never falls, and what adds up."""

import math
from dataclasses import replace

import numpy as np
import pytest

from decoder.alignment.kernels import STAY, AlignmentArrays, align_frames
from decoder.gaussians import kernels, shards
from decoder.gaussians.models import GaussianModels
from decoder.gaussians.shards import GraphSettings, ShardWorker, TrainingUtterance, shards_of, survey
from decoder.gaussians.statistics import (
    Accumulator,
    estimate_gaussians,
    estimate_transitions,
    floored,
    split,
    state_occupancy,
    targets,
)
from decoder.gaussians.transitions import Transitions
from readers.htk.parameter_file import read_features
from readers.tables.passes import LEAST_FRAMES
from tests.decoder.gaussians.reference import DICTIONARY, all_paths, component_logs, log_sum, make_corpus, topology

FLOOR = np.full(2, 0.01)


@pytest.fixture
def shard(tmp_path):
    return corpus_shard(tmp_path)


def corpus_shard(directory, count=12, any_order=True):
    utterances = [TrainingUtterance(n, path, None, None, words) for n, path, words in make_corpus(directory, count)]
    (found,) = shards_of(((u, 20) for u in utterances), DICTIONARY, GraphSettings(topology(any_order), 0.4))
    return found


def flat(shard):
    found = survey(shard)[0]
    models = GaussianModels.flat(topology().states, *found.gaussian())
    return models, Transitions.flat(shard.settings.topology)


def trained(shard, passes, components=1, method="baum-welch"):
    """Models after some passes, and the log-likelihoods before each."""
    models, transitions = flat(shard)
    worker, history = ShardWorker(), []
    for number in range(passes):
        sums = worker.sums(shard, models, transitions, method if number else "baum-welch")
        assert sums.failures == []
        history.append(sums.log_likelihood)
        models = estimate_gaussians(models, sums, FLOOR)
        transitions = estimate_transitions(transitions, shard.settings.topology, sums)
        if number == 3 and components > 1:
            models = split(models, np.full(len(models.states), components))
            history.clear()
    return models, transitions, history


def twin_sums(shard, models, transitions, method):
    """The sums, one addition at a time; and the occupancies of the states."""
    result = Accumulator.empty(models, transitions)
    topology = shard.settings.topology
    number = {way: i for i, way in enumerate(topology.ways)}
    builder = shard.settings.graphs(shard.dictionary)
    for utterance in shard.utterances:
        x = read_features(utterance)[0].T.astype(np.float64)
        graph = builder.graph(utterance.words)
        place = [list(topology.models[graph.units[u].model]).index(s) + 1 for s, u in zip(graph.state, graph.unit)]
        silent = [graph.units[u].model == topology.silence for u in graph.unit]
        target = np.repeat(np.arange(len(graph.row)), np.diff(graph.first_arc))

        def way(source, target, graph=graph, place=place, silent=silent):
            """The number of a way of silence, len(number) for another transition; target None: the end."""
            inside = target is not None and graph.unit[source] == graph.unit[target]
            pair = (place[source], place[target] if inside else 4)
            return number[pair] if silent[source] and topology.ways else len(number)

        ways = np.append(transitions.ways, 1.0)
        stay = transitions.stay[graph.row]
        arc_ways = [way(s, t) for s, t in zip(graph.arc_source, target)]
        end_ways = [way(p, None) if np.isfinite(graph.final[p]) else len(number) for p in range(len(graph.row))]
        arrays = kernels_arrays(graph, stay, ways, arc_ways, end_ways)
        states = [[component_logs(models, k, frame) for k in range(len(models.states))] for frame in x]
        scores = np.array([[log_sum(logs) for logs in row] for row in states])
        if method == "baum-welch":
            total, occupancy, stays, arcs, ends = all_paths(scores, arrays)
        else:
            cost, position, how = align_frames(scores, arrays, 1.0, math.inf, 1 << 20)
            total, occupancy = -cost, np.zeros((len(graph.row), len(x)))
            occupancy[position, np.arange(len(x))] = 1
            stays, arcs, ends = np.zeros(len(graph.row)), np.zeros(len(target)), np.zeros(len(graph.row))
            np.add.at(stays, position[how == STAY], 1)
            np.add.at(arcs, how[how >= 0], 1)
            ends[position[-1]] = 1
        for p, t in np.argwhere(occupancy > 0):
            k = graph.row[p]
            shares = occupancy[p, t] * np.exp(states[t][k] - scores[t, k])
            for c, share in enumerate(shares, start=models.first[k]):
                result.occupancy[c] += share
                result.total[c] += share * x[t]
                result.square[c] += share * x[t] ** 2
        np.add.at(result.stays, graph.row, stays)
        np.add.at(result.leaves, graph.row[graph.arc_source], arcs)
        np.add.at(result.leaves, graph.row, ends)
        np.add.at(result.ways, arc_ways, arcs)
        np.add.at(result.ways, end_ways, ends)
        result.log_likelihood += total
        result.frames += len(x)
    return result


def kernels_arrays(graph, stay, ways, arc_ways, end_ways):
    return AlignmentArrays(
        graph.row, -np.log(stay), graph.first_arc, graph.arc_source,
        graph.arc_cost - np.log(1 - stay)[graph.arc_source] - np.log(ways[arc_ways]), graph.entry,
        graph.final - np.log(1 - stay) - np.log(ways[end_ways]), graph.to_end,
    )  # fmt: skip


@pytest.mark.parametrize("method", ["baum-welch", "viterbi"])
@pytest.mark.parametrize("any_order", [True, False])
def test_a_pass_equals_its_plain_twin(tmp_path, method, any_order):
    shard = corpus_shard(tmp_path, 4, any_order)
    models, transitions, _ = trained(shard, 5, components=3, method=method)
    found = ShardWorker().sums(shard, models, transitions, method)
    expected = twin_sums(shard, models, transitions, method)
    for mine, theirs in zip(found.arrays(), expected.arrays()):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-12)
    new, twin = estimate_gaussians(models, found, FLOOR), estimate_gaussians(models, expected, FLOOR)
    for name in ("means", "variances", "weights"):
        np.testing.assert_allclose(getattr(new, name), getattr(twin, name), rtol=1e-6, atol=1e-9)


def test_estimates_equal_their_plain_twin(shard):
    models, transitions, _ = trained(shard, 5, components=2)
    sums = twin_sums(replace(shard, utterances=shard.utterances[:4]), models, transitions, "baum-welch")
    new = estimate_gaussians(models, sums, FLOOR)
    for k in range(len(models.states)):
        which = range(models.first[k], models.first[k + 1])
        for c in which:
            if sums.occupancy[c] >= LEAST_FRAMES:
                mean = sums.total[c] / sums.occupancy[c]
                variance = [max(v, f) for v, f in zip(sums.square[c] / sums.occupancy[c] - mean**2, FLOOR)]
            else:
                mean, variance = models.means[c], models.variances[c]
            np.testing.assert_allclose(new.means[c], mean, rtol=1e-6)
            np.testing.assert_allclose(new.variances[c], variance, rtol=1e-6)
        total = sum(sums.occupancy[c] for c in which)
        expected = [max(sums.occupancy[c] / total, 1e-5) for c in which]
        np.testing.assert_allclose(new.weights[list(which)], expected, rtol=1e-4)
    moved = estimate_transitions(transitions, shard.settings.topology, sums)
    seen = sums.stays + sums.leaves > 0
    np.testing.assert_allclose(
        moved.stay[seen], np.clip(sums.stays / (sums.stays + sums.leaves), 1e-5, 1 - 1e-5)[seen], rtol=1e-6
    )
    for start in (1, 2, 3):
        which = [i for i, (source, _) in enumerate(shard.settings.topology.ways) if source == start]
        assert moved.ways[which].sum() == pytest.approx(1)
        np.testing.assert_allclose(moved.ways[which], sums.ways[which] / sums.ways[which].sum(), atol=1e-4)


@pytest.mark.parametrize("method", ["baum-welch", "viterbi"])
def test_the_log_likelihood_never_falls_at_a_fixed_number_of_gaussians(shard, method):
    """Of all paths for Baum-Welch, of the best path for Viterbi, summed over the utterances."""
    _, _, history = trained(shard, 8, method=method)
    first = 0 if method == "baum-welch" else 1  # the first pass sums over all paths
    assert np.all(np.diff(history[first:]) >= -1e-9 * abs(history[0]))
    assert history[-1] > history[first] + 100
    _, _, history = trained(shard, 12, components=3, method=method)
    assert len(history) == 8
    assert np.all(np.diff(history) >= -1e-9 * abs(history[0]))
    assert history[-1] > history[0] + 10


@pytest.mark.parametrize("method", ["baum-welch", "viterbi"])
def test_occupancies_sum_to_the_number_of_frames(shard, method):
    models, transitions, _ = trained(shard, 6, components=2, method=method)
    sums = ShardWorker().sums(shard, models, transitions, method)
    assert sums.occupancy.sum() == pytest.approx(sums.frames, rel=1e-9)
    assert sums.frames == survey(shard)[0].frames[0]
    np.testing.assert_allclose(state_occupancy(models, sums.occupancy), sums.stays + sums.leaves, rtol=1e-7, atol=1e-7)
    assert sums.ways.sum() == pytest.approx(sums.leaves.sum())


def test_a_wide_beam_changes_nothing_and_a_narrow_one_drops_paths(shard):
    models, transitions, _ = trained(shard, 5)
    exact = ShardWorker().sums(shard, models, transitions, "baum-welch")
    wide = ShardWorker().sums(shard, models, transitions, "baum-welch", 200.0)
    np.testing.assert_allclose(wide.occupancy, exact.occupancy, atol=1e-9)
    models, transitions = flat(shard)
    exact = ShardWorker().sums(shard, models, transitions, "baum-welch")
    narrow = ShardWorker().sums(shard, models, transitions, "baum-welch", 1e-3)
    assert narrow.log_likelihood < exact.log_likelihood - 1
    assert narrow.occupancy.sum() == pytest.approx(narrow.frames)


def test_utterances_without_a_path_or_of_too_many_frames_are_reported(shard, monkeypatch):
    models, transitions, _ = trained(shard, 2)
    (graph, *_) = ShardWorker().graphs(shard)
    arrays = graph.with_transitions(transitions)
    scores = np.zeros((20, len(graph.states)))
    assert math.isnan(kernels.forward_backward(scores, arrays, math.inf, 100)[0])
    scores[7] = -math.inf
    assert kernels.forward_backward(scores, arrays, math.inf, 1 << 20)[0] == -math.inf
    monkeypatch.setattr(shards, "MOST_CELLS", 100)
    sums = ShardWorker().sums(shard, models, transitions, "baum-welch")
    assert len(sums.failures) == 12
    assert sums.frames == 0
    size = read_features(shard.utterances[0])[0].shape[1]
    assert sums.failures[0] == (
        "u0", f"{size} frames take too much memory; expected a shorter recording, or a narrower beam"
    )  # fmt: skip


def test_scores_of_states_equal_their_plain_twin():
    rng = np.random.default_rng(3)
    first = np.array([0, 1, 4, 6])
    models = GaussianModels(
        ("x", "y", "z"), first, np.array([1, 0.5, 0.3, 0.2, 0.9, 0.1]), rng.normal(size=(6, 3)),
        rng.uniform(0.1, 2, (6, 3)),
    )  # fmt: skip
    features = rng.normal(size=(3, 300)).astype(np.float32)
    scores = models.scores(features, np.array([2, 0], np.int32))
    for t in (0, 127, 128, 299):
        for i, k in enumerate((2, 0)):
            expected = log_sum(component_logs(models, k, features[:, t].astype(np.float64)))
            assert scores[i, t] == pytest.approx(expected, rel=1e-12)
    likelihoods = models.log_likelihoods(features)
    assert likelihoods.dtype == np.float32
    assert likelihoods.flags.f_contiguous
    assert likelihoods.shape == (3, 300)
    np.testing.assert_array_equal(likelihoods[[2, 0]], scores.astype(np.float32))


def test_floors_keep_probabilities_above_them_and_in_proportion():
    np.testing.assert_allclose(floored(np.array([6.0, 2.0, 0.0]), 0.1), [0.675, 0.225, 0.1])
    np.testing.assert_allclose(floored(np.array([10.0, 1.0, 0.0]), 0.1), [0.8, 0.1, 0.1])
    assert floored(np.array([3.0, 1.0]), 0.1).tolist() == [0.75, 0.25]


def test_components_go_to_frequent_states_and_halves_lie_around_them():
    models = GaussianModels.flat(("a", "b", "c"), np.zeros(2), np.full(2, 4.0))
    counts = targets(models, np.array([1e5, 1e3, 30.0]), 12)
    assert counts.sum() == 12
    assert counts[0] > counts[1] > counts[2] == 1
    assert targets(models, np.array([50.0, 30.0, 30.0]), 12).tolist() == [2, 1, 1]  # too few frames for more
    more = split(models, np.array([1, 2, 3]))
    assert more.first.tolist() == [0, 1, 3, 6]
    np.testing.assert_allclose(more.weights, [1, 0.5, 0.5, 0.25, 0.5, 0.25])
    np.testing.assert_allclose(more.means[1:3], [[0.4, 0.4], [-0.4, -0.4]])
    np.testing.assert_allclose(more.variances, 4.0)
