"""Deterministic lattices against every path of the lattice that they come from."""

import numpy as np
import pytest

from decoder.lattices.determinise import determinise
from readers.errors import GraphError
from tests.decoder.lattices.small_lattices import lattice_of, paths, random_lattice, spoken

SEEDS = range(40)


def best_of_words(lattice):
    """words -> (score, acoustic, lm, segments) of the best path."""
    best = {}
    for path, score in paths(lattice):
        words = tuple(spoken(lattice, path))
        if words not in best or score > best[words][0]:
            path = list(path)
            segments = [] if lattice.div is None else [one for link in path for one in lattice.div[link] or ()]
            best[words] = score, lattice.acoustic[path].sum(), lattice.lm[path].sum(), segments
    return best


def with_segments(lattice, seed):
    """Every link says how its time is shared out among one to three segments."""
    rng = np.random.default_rng(seed)
    div = []
    for start, end in zip(lattice.start, lattice.end):
        count = int(rng.integers(1, 4))
        length = float(lattice.time[end] - lattice.time[start]) / count
        div.append(tuple((str(rng.choice(["x", "y"])), length, None) for _ in range(count)))
    lattice.div = div
    return lattice


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_word_sequence_once_with_its_best_scores(seed, segments):
    lattice = random_lattice(seed)
    if segments:
        with_segments(lattice, seed)
    found = determinise(lattice)
    every = [tuple(spoken(found, path)) for path, _ in paths(found)]
    assert len(every) == len(set(every))
    expected, result = best_of_words(lattice), best_of_words(found)
    assert result.keys() == expected.keys()
    for words, (score, acoustic, lm, alignment) in result.items():
        # The penalty of words is not on links that say nothing, so that whole scores agree, too.
        assert (score, acoustic, lm) == pytest.approx(expected[words][:3], abs=1e-5)
        if segments:
            assert alignment == expected[words][3]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_node_has_a_word_twice(seed):
    found = determinise(random_lattice(seed))
    leaving = list(zip(found.start.tolist(), found.word))
    assert len(leaving) == len(set(leaving))


@pytest.mark.parametrize("seed", SEEDS)
def test_times_go_forward_by_the_segments(seed):
    lattice = with_segments(random_lattice(seed), seed)
    found = determinise(lattice)
    for link, (start, end) in enumerate(zip(found.start, found.end)):
        length = sum(duration for _, duration, _ in found.div[link] or ())
        assert found.time[end] - found.time[start] == pytest.approx(length, abs=1e-9)
    assert found.time[-1] == lattice.time.max()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_link_goes_back_in_time(seed):
    found = determinise(random_lattice(seed))
    assert (found.time[found.start] <= found.time[found.end]).all()


def test_once_is_enough():
    found = determinise(random_lattice(1))
    again = determinise(found)
    assert (again.num_nodes, again.num_links) == (found.num_nodes, found.num_links)


def test_more_nodes_than_wanted():
    with pytest.raises(GraphError, match="more than 2 nodes when made deterministic; expected a pruned lattice"):
        determinise(random_lattice(5), max_nodes=2)


def test_no_possible_path():
    with pytest.raises(GraphError, match="no path"):
        determinise(lattice_of([(0, 1, "a", -np.inf, 0)]))


def test_penalties_of_sentence_marks_stay_in_the_scores():
    """A mark goes, what it costs does not: only some paths may have one."""
    links = [(0, 1, "a", -1.0, 0.0), (0, 1, "b", -2.0, 0.0), (1, 3, "</s>", 0.0, 0.0), (1, 2, "c", -5.0, 0.0)]
    lattice = lattice_of([*links, (2, 3, "!NULL", 0.0, 0.0)], header={"wdpenalty": "-10", "acscale": "0.5"})
    scores = [
        {tuple(word for word in spoken(one, path) if word != "</s>"): score for path, score in paths(one)}
        for one in (lattice, determinise(lattice))
    ]
    assert scores[1] == pytest.approx(scores[0])
