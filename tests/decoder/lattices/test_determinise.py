"""Deterministic lattices against every path of the lattice that they come from."""

import numpy as np
import pytest

from decoder.lattices.determinise import determinise
from readers.errors import GraphError
from readers.htk.slf import read_slf, write_slf
from readers.results.lattice import Lattice
from tests.decoder.lattices.small_lattices import lattice_of, paths, random_lattice, spoken, with_segments

SEEDS = range(40)


def best_of_words(lattice):
    """words -> (score, acoustic, lm, segments) of the best path."""
    best, rows = {}, lattice.segments.rows()
    for path, score in paths(lattice):
        words = tuple(spoken(lattice, path))
        if words not in best or score > best[words][0]:
            path = list(path)
            segments = [segment for link in path for segment in rows[link]]
            best[words] = score, lattice.acoustic[path].sum(), lattice.lm[path].sum(), segments
    return best


def with_random_segments(lattice, seed):
    """Give every link one, two or five segments that share its time."""
    rng = np.random.default_rng(seed)
    rows = []
    for start, end in zip(lattice.start, lattice.end):
        count = int(rng.choice([1, 2, 5]))  # a whole number of HTK's units of time
        length = float(lattice.time[end] - lattice.time[start]) / count
        rows.append(tuple((str(rng.choice(["x", "y"])), length, None) for _ in range(count)))
    return with_segments(lattice, rows)


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_word_sequence_once_with_its_best_scores(seed, segments):
    lattice = random_lattice(seed)
    if segments:
        lattice = with_random_segments(lattice, seed)
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
    lattice = with_random_segments(random_lattice(seed), seed)
    found = determinise(lattice)
    for start, end, segments in zip(found.start, found.end, found.segments.rows()):
        length = sum(duration for _, duration, _ in segments)
        assert found.time[end] - found.time[start] == pytest.approx(length, abs=1e-9)
    assert found.time[-1] == lattice.time.max()


def test_times_of_frames_are_counted_and_not_summed(tmp_path):
    """In seconds 0.09 - (0.01 + 0.01 + 0.07) is less than 0, which no reader of lattices takes."""
    frame = 0.01
    first, second = (tuple((name, count * frame, None) for count in (1, 1, 7)) for name in "xy")
    links = [(0, 1, "a", -1, 0), (0, 2, "a", -1, 0), (1, 3, "b", -1, 0), (2, 3, "c", -1, 0)]
    lattice = with_segments(lattice_of(links, [0, 9 * frame, 9 * frame, 9 * frame]), [first, second, None, None])
    found = determinise(lattice)
    assert (found.time >= 0).all()
    assert set(np.round(found.time / frame, 9).tolist()) <= {0.0, 9.0}
    write_slf(tmp_path / "a.lat", found, 17)
    read_slf(tmp_path / "a.lat")


@pytest.mark.parametrize("seed", SEEDS)
def test_no_link_goes_back_in_time(seed):
    found = determinise(random_lattice(seed))
    assert (found.time[found.start] <= found.time[found.end]).all()


def test_once_is_enough():
    found = determinise(random_lattice(1))
    again = determinise(found)
    assert (again.num_nodes, again.num_links) == (found.num_nodes, found.num_links)


def test_more_nodes_than_wanted():
    with pytest.raises(GraphError, match="more than 2 nodes after determinisation; expected a pruned lattice"):
        determinise(random_lattice(5), max_nodes=2)


def test_a_node_without_links():
    found = determinise(Lattice.of_words([0.0], [], [], [], [], []))
    assert found.word in ([], ["!NULL"])
    assert found.ends == (0, found.num_nodes - 1)


def test_no_possible_path():
    with pytest.raises(GraphError, match="no path"):
        determinise(lattice_of([(0, 1, "a", -np.inf, 0)]))


@pytest.mark.parametrize("score", ["acoustic", "lm"])
@pytest.mark.parametrize("seed", SEEDS)
def test_links_that_lead_nowhere_are_left_out(seed, score):
    lattice = random_lattice(seed)
    rng = np.random.default_rng(seed)
    getattr(lattice, score)[rng.random(lattice.num_links) < 0.3] = -np.inf
    expected = {words: best[:3] for words, best in best_of_words(lattice).items() if np.isfinite(best[0])}
    if not expected:
        with pytest.raises(GraphError, match="no path from start to end"):
            determinise(lattice)
        return
    found = determinise(lattice)
    assert set(range(found.num_nodes)) - set(found.start.tolist()) == {found.num_nodes - 1}
    result = best_of_words(found)
    assert result.keys() == expected.keys()
    for words, scores in expected.items():
        assert result[words][:3] == pytest.approx(scores, abs=1e-5)


def test_penalties_of_sentence_marks_stay_in_the_scores():
    """A mark goes, what it costs does not: only some paths may have one."""
    links = [(0, 1, "a", -1.0, 0.0), (0, 1, "b", -2.0, 0.0), (1, 3, "</s>", 0.0, 0.0), (1, 2, "c", -5.0, 0.0)]
    lattice = lattice_of([*links, (2, 3, "!NULL", 0.0, 0.0)], scales={"word_penalty": -10.0, "acoustic_scale": 0.5})
    scores = [
        {tuple(word for word in spoken(one, path) if word != "</s>"): score for path, score in paths(one)}
        for one in (lattice, determinise(lattice))
    ]
    assert scores[1] == pytest.approx(scores[0])
