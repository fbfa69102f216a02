"""Posteriors, confidences and oracles of lattices against every path spelled out."""

import re
from dataclasses import replace

import numpy as np
import pytest

from decoder.lattices.links import weigh
from decoder.lattices.posteriors import best_path, confident_words, oracle, posteriors, word_confidences
from readers.errors import GraphError
from readers.htk.slf import NULL_WORD
from tests.decoder.lattices.small_lattices import edit_distance, lattice_of, paths, random_lattice, spoken

SEEDS = range(30)


@pytest.mark.parametrize("scale", [1.0, 0.3])
@pytest.mark.parametrize("seed", SEEDS)
def test_posteriors_are_those_of_the_paths(seed, scale):
    lattice = random_lattice(seed)
    every = paths(lattice)
    total = np.logaddexp.reduce([scale * score for _, score in every])
    found = posteriors(lattice, scale)
    assert found.total == pytest.approx(total)
    for link in range(lattice.num_links):
        through = sum(np.exp(scale * score - total) for path, score in every if link in path)
        assert np.exp(found.link[link]) == pytest.approx(through, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_posteriors_sum_to_one_at_each_time(seed):
    lattice = random_lattice(seed)
    probability = np.exp(posteriors(lattice).link)
    for time in np.arange(0.1, lattice.time.max(), 0.25):
        crossing = (lattice.time[lattice.start] <= time) & (lattice.time[lattice.end] > time)
        assert probability[crossing].sum() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_path(seed):
    lattice = random_lattice(seed)
    assert tuple(best_path(weigh(lattice))) == max(paths(lattice), key=lambda one: one[1])[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_of_equal_paths_each_has_confidences_and_others_have_none(seed):
    lattice = random_lattice(seed)
    rounded = [np.round(one) for one in (lattice.acoustic, lattice.lm)]  # many paths then have the same score
    lattice = replace(lattice, acoustic=rounded[0], lm=rounded[1])
    found = [(spoken(lattice, links), score) for links, score in paths(lattice)]
    best = max(score for _, score in found)
    for words in {tuple(words) for words, _ in found if words}:
        tied = bool(max(score for other, score in found if tuple(other) == words) > best - 1e-6)
        confidences = word_confidences(lattice, words)
        assert all((one is not None and 0 < one <= 1) is tied for one in confidences)
        assert len(confidences) == len(words)


def test_a_word_is_as_sure_as_all_links_that_say_it_at_one_moment():
    # Two ways to say "a", apart in time by a frame, against "b".
    links = [(0, 1, "a", 0, 0), (0, 2, "a", 0, 0), (0, 3, "b", 0, 0)]
    links += [(1, 4, NULL_WORD, 0, 0), (2, 4, NULL_WORD, 0, 0), (3, 4, NULL_WORD, 0, 0)]
    lattice = lattice_of(links, [0, 0.9, 1.0, 1.0, 1.2], scales={})
    (word,) = confident_words(lattice)
    assert (word.text, word.start, word.end) == ("a", 0.0, 0.9)
    assert word.confidence == pytest.approx(2 / 3)


def test_a_word_without_times_is_as_sure_as_its_link():
    lattice = lattice_of([(0, 1, "a", -1.0, 0.0), (0, 1, "b", -3.0, 0.0)], times=[np.nan, np.nan], scales={})
    (word,) = confident_words(lattice)
    assert (word.text, word.confidence) == ("a", pytest.approx(1 / (1 + np.exp(-2))))


def test_the_oracle_takes_no_impossible_link():
    lattice = lattice_of([(0, 1, "a", -1.0, 0.0), (0, 1, "b", -np.inf, 0.0)])
    assert oracle(lattice, ["b"]) == (1, ["a"])
    with pytest.raises(GraphError, match="no path from start to end"):
        oracle(lattice_of([(0, 1, "b", -np.inf, 0.0)]), ["b"])


def test_a_sure_word_is_sure():
    lattice = lattice_of([(0, 1, "<s>", 0, 0), (1, 2, "a", -5, 0), (2, 3, "</s>", 0, 0)], scales={})
    (word,) = confident_words(lattice)
    assert word.confidence == pytest.approx(1.0)


@pytest.mark.parametrize("reference", ["", "a", "abc", "ccba", "xyz", "bbbbbbb"])
@pytest.mark.parametrize("seed", range(10))
def test_the_oracle_is_the_nearest_path(seed, reference):
    lattice = random_lattice(seed)
    errors, words = oracle(lattice, list(reference))
    distances = [edit_distance(spoken(lattice, path), reference) for path, _ in paths(lattice)]
    assert errors == min(distances) == edit_distance(words, reference)
    assert words in [spoken(lattice, path) for path, _ in paths(lattice)]


LOOP = [(0, 1, "a", 0, 0), (1, 2, "b", 0, 0), (2, 1, "c", 0, 0), (2, 3, "d", 0, 0)]


@pytest.mark.parametrize("measure", [posteriors, confident_words, lambda lattice: oracle(lattice, ["a"])])
@pytest.mark.parametrize(
    ("links", "fault"),
    [(LOOP, "has a loop; expected none"), ([(0, 2, "a", 0, 0), (1, 2, "b", 0, 0)], "2 start nodes")],
)
def test_faults_are_told(measure, links, fault):
    with pytest.raises(GraphError, match=fault):
        measure(lattice_of(links, scales={}))


@pytest.mark.parametrize("measure", [posteriors, confident_words])
def test_a_lattice_without_a_possible_path(measure):
    with pytest.raises(GraphError, match="no path from start to end"):
        measure(lattice_of([(0, 1, "a", -np.inf, 0)], scales={}))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("score", [np.nan, np.inf, 1e31, -1e31])
@pytest.mark.parametrize("measure", [posteriors, confident_words, lambda lattice: oracle(lattice, ["a"])])
def test_a_score_that_is_none(measure, score):
    with pytest.raises(GraphError, match=f"link 1 scores {re.escape(str(score))}; expected a log-likelihood"):
        measure(lattice_of([(0, 1, "a", -1, 0), (0, 1, "b", score, 0)], scales={}))
