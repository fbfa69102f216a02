"""Word lattices expanded to states: the same paths with the same scores, and the reference among them."""

import numpy as np
import pytest

from decoder.sequence_training.lattices.expansion import StateTable, expand, prune
from decoder.sequence_training.lattices.reference import find_reference
from readers.errors import ShapeError
from readers.sources.lattices.lattice_archive import check
from readers.sources.lattices.state_lattice import StateLattice, StatePath
from tests.decoder.lattices.search_paths import best_path
from tests.decoder.search.test_decoder import random_case
from tests.decoder.search.test_lattice import paths

SEEDS = [seed for seed in range(60) if seed % 2 == 0]


def decoded(seed):
    """(decoder, scores, lattice) of a random case with a language model; None without a path."""
    case = random_case(seed)
    result = case.decoder.with_options(lattice_beam=1e9).decode(case.scores)
    return None if result.lattice is None or case.lm_cost is None else (case, result.lattice)


CASES = {seed: found for seed in SEEDS if (found := decoded(seed)) is not None}


def column(lattice, name):
    """A column of the arcs of a StateLattice or a LatticeSupervision."""
    return lattice.arcs[name] if isinstance(lattice, StateLattice) else getattr(lattice, name)


def arc_paths(arcs, limit=300):
    """Up to `limit` paths from start to end, each a list of arcs."""
    start, end = column(arcs, "start_node"), column(arcs, "end_node")
    leaving = [np.flatnonzero(start == node).tolist() for node in range(arcs.num_nodes)]
    waiting, found = [(0, [])], []
    while waiting and len(found) < limit:
        node, path = waiting.pop()
        if node == arcs.num_nodes - 1:
            found.append(path)
        waiting += [(int(end[arc]), [*path, arc]) for arc in leaving[node]]
    return found


def senones_of(arcs, path):
    return tuple(np.repeat(column(arcs, "senone")[path], column(arcs, "num_arc_frames")[path]).tolist())


def test_there_are_enough_cases():
    assert len(CASES) > 20
    assert sum(lattice.num_links > 3 for _, lattice in CASES.values()) > 10


@pytest.mark.parametrize("seed", CASES)
def test_paths_and_scores_are_those_of_the_word_lattice(seed):
    case, lattice = CASES[seed]
    decoder, table = case.decoder, StateTable(case.decoder)
    arcs, shares = expand(lattice, decoder, table, case.scores)
    options, log = decoder.options, case.graph.transitions
    expected = []
    for links in paths(lattice):
        states = [(state, last - first) for link in links for state, first, last in lattice.states[link]]
        senones = tuple(table.senone[state] for state, count in states for _ in range(count))
        names = [(decoder.graph.states[state], count) for state, count in states]
        transition = sum((count - 1) * log[name][0] if count > 1 else 0.0 for name, count in names)
        transition += sum(log[name][1] for name, _ in names)
        words = sum(lattice.word[link] >= 0 and table.is_word[lattice.word[link]] for link in links)
        acoustic = sum(float(case.scores[row, t]) for t, row in enumerate(senones))
        ln_p = lattice.lm[links].sum()
        rest = -lattice.cost[links].sum() - options.acweight * acoustic - transition + options.word_penalty * words
        expected.append((senones, transition, rest + (1 - options.lm_scale) * ln_p, words))
    found = [
        (
            senones_of(arcs, path),
            arcs.arcs["transition_score"][path].sum(),
            arcs.arcs["lm_score"][path].sum(),
            arcs.arcs["starts_word"][path].sum(),
        )
        for path in arc_paths(arcs)
    ]
    assert len(found) == len(expected)
    for one, other in zip(sorted(found), sorted(expected), strict=True):
        assert one[0] == other[0]
        assert one[3] == other[3]
        assert one[1:3] == pytest.approx(other[1:3], abs=2e-4)
    for links in paths(lattice, 5):
        total = shares.lm[links].sum(), shares.transition[links].sum()
        assert any(total == pytest.approx(other[2:0:-1], abs=2e-4) for other in expected)


def made(case, lattice, senones=None):
    """A supervision whose reference is the best path of a lattice, or has other senones."""
    table = StateTable(case.decoder)
    arcs, shares = expand(lattice, case.decoder, table, case.scores)
    links = best_path(lattice)[1]
    steps = np.array([step for link in links for step in lattice.states[link]])
    word = [lattice.word[link] for link in links]
    words = tuple(case.decoder.graph.words[w] for w in word if w >= 0 and table.is_word[w])
    state, ones = steps[:, 0], np.ones(len(steps))
    reference = StatePath(
        *(steps[:, 1], steps[:, 2], table.senone[state] if senones is None else senones, table.phone[state]),
        *(-ones, -2 * ones, np.arange(len(ones)) < len(words), words),
    )
    found = find_reference(lattice, shares, case.decoder, table, reference)
    if found is None:
        arcs = arcs.with_path(reference)
    return arcs.supervision("u", reference, found or reference.scores, table.silence), found


@pytest.mark.parametrize("seed", CASES)
def test_the_best_path_is_found_as_reference(seed):
    case, lattice = CASES[seed]
    lattice_supervision, found = made(case, lattice)
    check(lattice_supervision, len(case.scores))
    links = best_path(lattice)[1]
    table = StateTable(case.decoder)
    shares = expand(lattice, case.decoder, table, case.scores)[1]
    assert sum(found) >= shares.lm[links].sum() + shares.transition[links].sum() - 1e-9


@pytest.mark.parametrize("seed", CASES)
def test_another_reference_becomes_a_path(seed):
    case, lattice = CASES[seed]
    table = StateTable(case.decoder)
    before, _ = expand(lattice, case.decoder, table, case.scores)
    steps = sum(len(lattice.states[link]) for link in best_path(lattice)[1])
    other = np.arange(steps) % 2 + len(case.scores)
    found, known = made(case, lattice, other)
    assert known is None
    check(found)
    wanted = tuple(found.reference_senones.tolist())
    taken = [path for path in arc_paths(found, 20000) if senones_of(found, path) == wanted]
    assert len(taken) == 1
    assert found.lm_score[taken[0]].sum() == found.reference_score == -steps
    assert found.transition_score[taken[0]].sum() == found.reference_transition_score == -2 * steps
    assert found.num_reference_words == found.starts_word[taken[0]].sum()
    assert len(arc_paths(found, 20000)) == len(arc_paths(before, 20000)) + 1


def test_a_reference_of_other_length_is_refused():
    case, lattice = next(iter(CASES.values()))
    arcs, _ = expand(lattice, case.decoder, StateTable(case.decoder), case.scores)
    one = np.ones(1)
    reference = StatePath(*(np.array([0]), np.array([99]), one.astype(int), one.astype(int), one, one, one > 0, ("x",)))
    with pytest.raises(ShapeError, match="99 frames"):
        arcs.with_path(reference)


@pytest.mark.parametrize("seed", CASES)
def test_pruned_lattices_keep_the_best_paths(seed):
    case, lattice = CASES[seed]
    frames = int((lattice.time[lattice.end] - lattice.time[lattice.start]).sum())
    cost, _ = best_path(lattice)
    costs = sorted(lattice.cost[links].sum() for links in paths(lattice, 20000))
    for most in (0, frames // 3, frames - 1, frames):
        less = prune(lattice, most)
        assert best_path(less)[0] == pytest.approx(cost, abs=1e-9)
        left = sorted(less.cost[links].sum() for links in paths(less, 20000))
        assert set(np.round(left, 6)) <= set(np.round(costs, 6))
        kept = (less.time[less.end] - less.time[less.start]).sum()
        best = max(kept * 0, case.scores.shape[1])
        assert kept <= max(most, best) or len(left) > 1  # ties
        arcs, _ = expand(less, case.decoder, StateTable(case.decoder), case.scores)
        assert arcs.num_nodes >= 2
    assert prune(lattice, frames) is lattice
