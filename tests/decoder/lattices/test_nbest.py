"""N-best lists of lattices against the enumeration of all paths."""

from collections import defaultdict

import numpy as np
import pytest

from decoder.lattices.nbest import nbest
from decoder.scoring.error_counts import SENTENCE_MARKS
from readers.errors import GraphError
from readers.results.lattice import Lattice
from tests.decoder.lattices.small_lattices import lattice_of


def random_lattice(seed, num_nodes=7, num_links=18):
    """Scores are small whole numbers, so that ties occur and sums are exact."""
    rng = np.random.default_rng(seed)
    pairs = [(k, k + 1) for k in range(num_nodes - 1)]  # one start, one end
    while len(pairs) < num_links:
        pairs.append(tuple(sorted(rng.choice(num_nodes, 2, replace=False).tolist())))
    start, end = np.array(pairs, np.int32).T
    words = rng.choice(["a", "b", "c", "!NULL", "<s>"], num_links).tolist()
    acoustic, lm = (-rng.integers(0, 9, num_links).astype(float) for _ in range(2))
    scales = {"acoustic_scale": 0.5, "lm_scale": 2.0, "word_penalty": -1.0}
    return Lattice.of_words(np.arange(num_nodes) / 10, start, end, words, acoustic, lm, **scales)


def every_sequence(lattice):
    """words -> (whole score, acoustic, lm) of the best paths, by walking all of them."""
    found = defaultdict(set)

    def walk(node, words, acoustic, lm):
        if node == lattice.num_nodes - 1:
            found[words].add((acoustic + 2.0 * lm, acoustic, lm))
        for link in np.flatnonzero(lattice.start == node):
            word = lattice.word[link]
            cost = 0.5 * lattice.acoustic[link] - (word != "!NULL")
            longer = words if word in SENTENCE_MARKS else (*words, word)
            walk(lattice.end[link], longer, acoustic + cost, lm + lattice.lm[link])

    walk(0, (), 0.0, 0.0)
    return found


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("count", [1, 5, 10_000])
def test_nbest_is_the_best_of_all_paths_each_word_sequence_once(seed, count):
    lattice = random_lattice(seed)
    paths = every_sequence(lattice)
    totals = sorted((max(whole for whole, _, _ in scores) for scores in paths.values()), reverse=True)
    found = nbest(lattice, count)
    assert len({one.words for one in found}) == len(found) == min(count, len(paths))
    whole = [one.acoustic + 2.0 * one.lm for one in found]
    assert whole == totals[: len(found)]
    for one, score in zip(found, whole):
        assert (score, one.acoustic, one.lm) in paths[one.words]
        assert score == max(whole for whole, _, _ in paths[one.words])


def test_of_equally_good_paths_the_one_whose_links_come_first_is_listed_first():
    links = [(0, 1, "b", -1.0, 0.0), (0, 2, "a", -1.0, 0.0), (2, 3, "!NULL", 0.0, 0.0), (1, 3, "!NULL", 0.0, 0.0)]
    assert [one.words for one in nbest(lattice_of(links), 9)] == [("b",), ("a",)]
    assert [one.words for one in nbest(lattice_of([links[k] for k in (1, 0, 2, 3)]), 9)] == [("a",), ("b",)]


def test_equal_paths_with_different_numbers_of_links():
    """One word, said at once or after a link without a word, with the same scores."""
    links = [(0, 1, "!NULL", 0.0, 0.0), (0, 2, "a", -1.0, 0.0), (1, 2, "a", -1.0, 0.0), (2, 3, "b", 0.0, 0.0)]
    for order in ((0, 1, 2, 3), (1, 0, 2, 3), (2, 1, 0, 3)):
        assert [one.words for one in nbest(lattice_of([links[k] for k in order]), 9)] == [("a", "b")]


def test_impossible_links_are_in_no_list():
    links = [(0, 1, "a", -1.0, 0.0), (0, 1, "b", -np.inf, 0.0)]
    assert [one.words for one in nbest(lattice_of(links), 5)] == [("a",)]


def test_scales_that_are_not_given_are_1():
    lattice = Lattice.of_words(np.zeros(2), [0, 0], [1, 1], ["x", "y"], [-3.0, -1.0], np.zeros(2))
    assert [(one.words, one.acoustic) for one in nbest(lattice, 9)] == [(("y",), -1.0), (("x",), -3.0)]


@pytest.mark.parametrize(
    ("start", "end", "num_nodes", "message"),
    [
        ([0, 1], [2, 2], 3, "2 start nodes and 1 end nodes; expected one of each"),
        ([0, 0], [1, 2], 3, "1 start nodes and 2 end nodes"),
        ([0, 1, 2, 2], [1, 2, 1, 3], 4, "has a loop; expected none"),
    ],
)
def test_lattices_without_an_order_are_refused(start, end, num_nodes, message):
    count = len(start)
    lattice = Lattice.of_words(np.zeros(num_nodes), start, end, ["w"] * count, np.zeros(count), np.zeros(count))
    with pytest.raises(GraphError, match=message):
        nbest(lattice, 3)
