"""Consensus networks: the recursion's plain twin, exact cases, and fewer expected errors than the best path has."""

import numpy as np
import pytest

from decoder.lattices import consensus_kernels as kernels
from decoder.lattices.consensus import Aligner, Consensus, Slot, consensus
from decoder.lattices.links import weigh
from decoder.lattices.posteriors import best_path
from tests.decoder.lattices.small_lattices import edit_distance, lattice_of, paths, random_lattice, spoken

SEEDS = range(25)


def expected_errors(lattice, words):
    """Exactly, over all paths."""
    every = paths(lattice)
    weight = np.exp([score for _, score in every] - np.logaddexp.reduce([score for _, score in every]))
    return float(sum(w * edit_distance(spoken(lattice, path), words) for w, (path, _) in zip(weight, every)))


@pytest.mark.parametrize("seed", SEEDS)
def test_probabilities_of_a_slot_sum_to_one(seed):
    for slot in consensus(random_lattice(seed)).slots:
        assert sum(p for _, p in slot.alternatives) == pytest.approx(1.0, abs=3e-4)
        assert [p for _, p in slot.alternatives] == sorted((p for _, p in slot.alternatives), reverse=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_expected_errors_are_a_bound_that_the_words_keep(seed):
    lattice = random_lattice(seed)
    found = consensus(lattice)
    words = [word.text for word in found.words]
    assert expected_errors(lattice, words) <= found.expected_errors + 1e-3
    best = [lattice.word[link] for link in best_path(weigh(lattice)) if lattice.word[link] != "!NULL"]
    assert found.expected_errors <= errors_bound(lattice, best) + 1e-9


def test_a_lattice_of_places_is_its_own_consensus():
    """Links side by side between the same nodes: the recursion is exact, and slots are what stands there."""
    links = [(0, 1, "a", np.log(0.6), 0), (0, 1, "b", np.log(0.4), 0)]
    links += [(1, 2, "c", np.log(0.9), 0), (1, 2, "d", np.log(0.1), 0)]
    lattice = lattice_of(links, [0.0, 0.5, 1.5], scales={})
    found = consensus(lattice)
    assert [word.text for word in found.words] == ["a", "c"]
    first, second = found.slots
    assert first.alternatives == (("a", pytest.approx(0.6)), ("b", pytest.approx(0.4)))
    assert second.alternatives == (("c", pytest.approx(0.9)), ("d", pytest.approx(0.1)))
    assert (second.start, second.end) == pytest.approx((0.5, 1.5))
    assert (
        found.expected_errors
        == pytest.approx(0.5, abs=1e-4)
        == pytest.approx(expected_errors(lattice, ["a", "c"]), abs=1e-4)
    )


def test_many_likely_sentences_outvote_the_best_one():
    """The best path says x; but three others, more likely together, agree on what stands there."""
    links = [(0, 3, "x", np.log(0.3), 0)]
    links += [(0, 1, "y", np.log(0.7), 0), *((1, 3, word, np.log(1 / 3), 0) for word in "pqr")]
    lattice = lattice_of([(s, min(e, 2), w, a, l) for s, e, w, a, l in links], [0.0, 0.5, 1.0], scales={})
    assert next(word.text for word in consensus(lattice).words) == "y"


def errors_bound(lattice, words):
    aligner = Aligner(weigh(lattice), 1.0)
    _, _, errors = aligner.align(aligner.numbers(words))
    return errors


def test_the_errors_of_any_sequence_are_bounded():
    lattice = random_lattice(3)
    for words in (["a"], ["b", "a", "b"], []):
        assert errors_bound(lattice, words) >= expected_errors(lattice, words) - 1e-9


def plain_distance(words, slots):
    """Cost of the cheapest alignment of a path's words, 0 for none, with slots; DELTA for a word in no slot."""
    row = [0.0]
    for slot in slots:
        row.append(row[-1] + (slot != 0))
    for word in words:
        extra = (word != 0) * (1 + kernels.DELTA)
        above, row = row, [row[0] + extra]
        for slot, before, here in zip(slots, above, above[1:]):
            row.append(min(before + (word != slot), here + extra, row[-1] + (slot != 0)))
    return row


@pytest.mark.parametrize("seed", range(40))
def test_distances_of_a_single_path_are_edit_distances_to_the_first_slots(seed):
    """Links with and without words, and slots that need not begin or end with an empty one."""
    rng = np.random.default_rng(seed)
    words, slots = rng.integers(0, 3, rng.integers(1, 6)), rng.integers(0, 3, rng.integers(1, 6))
    count = len(words)
    cost = kernels.distances(count + 1, np.arange(count), np.arange(1, count + 1), words, np.ones(count), slots)
    for node in range(count + 1):
        np.testing.assert_allclose(cost[node], plain_distance(words[:node], slots), atol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_compiled_loops_equal_their_plain_twins(seed):
    rng = np.random.default_rng(seed)
    end = np.sort(rng.integers(1, 5, 9))
    end[-1] = 4
    start = np.array([rng.integers(0, k) for k in end])
    word, slots, time = rng.integers(0, 4, 9), np.array([0, 2, 0, 1, 0]), np.arange(5.0)
    share, begin = rng.random(9), start + rng.random(9)
    cost = kernels.distances(5, start, end, word, share, slots)
    plain_choice, kernels.choice = kernels.choice, kernels.choice.py_func
    try:
        np.testing.assert_allclose(kernels.distances.py_func(5, start, end, word, share, slots), cost, rtol=1e-12)
        rest = 5, start, end, word, share, slots, cost, begin, time, 4
        plain = kernels.alignment.py_func(*rest)
    finally:
        kernels.choice = plain_choice
    for a, b in zip(kernels.alignment(*rest), plain):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_words_whose_expected_times_overlap_share_the_time():
    slots = [
        Slot((("a", 0.9),), 0.1, 0.5),
        Slot((("", 0.9), ("x", 0.1)), 0.0, 9.0),
        Slot((("b", 0.8),), 0.3, 0.7),
        Slot((("c", 0.7),), 0.2, 0.25),
    ]
    words = Consensus(slots, 0.0).words
    assert [word.text for word in words] == ["a", "b", "c"]
    times = [time for word in words for time in (word.start, word.end)]
    assert times == pytest.approx([0.1, 0.4, 0.4, 0.45, 0.45, 0.45])
