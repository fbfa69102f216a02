"""Lattices that a network has rescored against every path of the lattice, scored sentence by sentence."""

import itertools

import numpy as np
import pytest

from acoustic.network.network import Network
from acoustic.scoring.word_scorer import WordScorer
from decoder.lattices.links import weigh
from decoder.lattices.nbest import nbest
from decoder.lattices.nbest_rescoring import RescoringOptions, rescore
from decoder.lattices.second_pass import rescore_with_network, within_beam
from decoder.lm.options import HistoryOptions
from decoder.scoring.error_counts import SENTENCE_MARKS
from readers.errors import GraphError
from readers.results.lattice import SENT_END
from tests.acoustic.scoring.test_word_scorer import WORDS, make_network, save
from tests.decoder.lattices.small_lattices import lattice_of, paths, random_lattice

SEEDS = range(4)
ALL = 100_000
EXACT = HistoryOptions(order=0)


@pytest.fixture(scope="module", params=[False, True], ids=["softmax", "classes"])
def scorer(request, tmp_path_factory) -> WordScorer:
    return WordScorer(save(make_network(request.param), tmp_path_factory.mktemp("network")), WORDS)


@pytest.fixture(scope="module")
def bigram(tmp_path_factory) -> WordScorer:
    """A network that knows one word of the history."""
    network = Network("double", threads=1)
    size = len(WORDS)
    network.add("Input", "features", rows=size)
    network.add("Input", "labels", rows=size)
    network.add("Parameter", "W", rows=size, cols=size)
    network.set_value("W", np.random.default_rng(3).normal(size=(size, size)))
    network.add("Times", "z", "W", "features")
    network.criteria.append(network.add("CrossEntropyWithSoftmax", "cost", "labels", "z").name)
    return WordScorer(save(network, tmp_path_factory.mktemp("bigram")), WORDS)


def plain(lattice, path) -> tuple[str, ...]:
    return tuple(lattice.word[link] for link in path if lattice.word[link] not in SENTENCE_MARKS)


def by_paths(lattice, scorer, weight) -> dict[tuple[str, ...], float]:
    """The best score of each word sequence, from all paths."""
    scores: dict[tuple[str, ...], float] = {}
    for path, score in paths(lattice):
        words = plain(lattice, path)
        old = sum(lattice.lm[link] for link in path)
        new = float(scorer.score([words])[0].sum())
        score += lattice.lm_scale * weight * (new - old)
        scores[words] = max(score, scores.get(words, -np.inf))
    return scores


def by_lattice(lattice) -> dict[tuple[str, ...], float]:
    hypotheses = nbest(lattice, ALL)
    options = RescoringOptions(1.0, lattice.lm_scale)
    return {hypothesis.words: options.score(hypothesis) for hypothesis in hypotheses}


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_without_merged_histories_every_path_has_the_score_of_its_sentence(scorer, seed, weight):
    lattice = random_lattice(seed)
    rescored = rescore_with_network(lattice, scorer, weight, EXACT)
    assert by_lattice(rescored) == pytest.approx(by_paths(lattice, scorer, weight), abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_it_is_the_limit_of_rescored_nbest_lists(scorer, seed):
    lattice = random_lattice(seed)
    lists = {"u": nbest(lattice, ALL)}
    new = {words: scorer.score([words])[0] for hypothesis in lists["u"] for words in hypothesis.sentences}
    options = RescoringOptions(0.4, lattice.lm_scale)
    expected = rescore(lists, new, options)["u"][0]
    best = nbest(rescore_with_network(lattice, scorer, 0.4, EXACT), 1)[0]
    # Of paths with equal words, a list has the one that is best by the old scores.
    assert options.score(best) >= options.score(expected) - 1e-9
    assert best.words == expected.words


@pytest.mark.parametrize("order", [2, 3, 5])
@pytest.mark.parametrize("seed", SEEDS)
def test_merged_histories_are_exact_for_a_network_that_knows_no_more(bigram, seed, order):
    lattice = random_lattice(seed, nodes=7)
    rescored = rescore_with_network(lattice, bigram, 0.7, HistoryOptions(order=order))
    expected = by_paths(lattice, bigram, 0.7)
    assert by_lattice(rescored) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_merged_histories_keep_all_sentences_and_the_best_path_to_each_node(scorer, seed, order):
    lattice = random_lattice(seed, nodes=7)
    rescored = rescore_with_network(lattice, scorer, 0.5, HistoryOptions(order=order))
    exact = by_paths(lattice, scorer, 0.5)
    assert by_lattice(rescored).keys() == exact.keys()
    unmerged = rescore_with_network(lattice, scorer, 0.5, EXACT)
    assert rescored.num_nodes <= unmerged.num_nodes
    first = plain(lattice, lattice.best_path(weigh(lattice).total))
    # Where the best path by the old scores goes, every state is its own.
    assert by_lattice(rescored)[first] == pytest.approx(exact[first], abs=1e-9)


@pytest.mark.parametrize("beam", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_beam_keeps_the_links_of_good_paths(scorer, seed, beam):
    lattice = random_lattice(seed)
    scores = paths(lattice)
    best = max(score for _, score in scores)
    expected = {link for path, score in scores if score >= best - beam - 1e-9 for link in path}
    assert set(np.flatnonzero(within_beam(weigh(lattice), beam)).tolist()) == expected
    rescored = rescore_with_network(lattice, scorer, 1.0, HistoryOptions(order=0, beam=beam))
    good = {plain(lattice, path) for path, score in scores if score >= best - beam}
    assert good <= by_lattice(rescored).keys()


def test_the_end_of_a_sentence_is_scored_once(scorer):
    marked = lattice_of([(0, 1, "a", -1.0, -1.0), (1, 2, SENT_END, 0.0, 0.0)])
    bare = lattice_of([(0, 1, "a", -1.0, -1.0)])
    (expected,) = scorer.score([["a"]])
    for lattice in (marked, bare):
        rescored = rescore_with_network(lattice, scorer, 1.0)
        assert rescored.lm.sum() == pytest.approx(expected.sum())


def test_several_sentences_begin_anew(scorer):
    links = [(0, 1, "a", -1.0, -1.0), (1, 2, "!SENT_START", -1.0, 0.0), (2, 3, "b", -1.0, -1.0)]
    rescored = rescore_with_network(lattice_of(links), scorer, 1.0)
    expected = sum(float(logs.sum()) for logs in scorer.score([["a"], ["b"]]))
    assert rescored.lm.sum() == pytest.approx(expected)


def test_what_cannot_be_rescored(scorer):
    lattice = lattice_of([(0, 1, SENT_END, 0.0, 0.0), (1, 2, "a", 0.0, 0.0)])
    with pytest.raises(GraphError, match="'a' comes after the end of the sentence"):
        rescore_with_network(lattice, scorer)
    links = [(node, node + 1, word, 0.0, 0.0) for node, word in itertools.product(range(12), "abc")]  # all are best
    with pytest.raises(GraphError, match="more than 50 nodes after rescoring; expected a pruned lattice"):
        rescore_with_network(lattice_of(links), scorer, 1.0, EXACT, max_nodes=50)


def test_a_beam_of_0_keeps_the_best_path_although_sums_are_rounded(scorer):
    for seed in range(100):
        lattice = random_lattice(seed)
        best = max(paths(lattice), key=lambda path: path[1])[0]
        rescored = rescore_with_network(lattice, scorer, 0.5, HistoryOptions(beam=0.0))
        assert plain(lattice, best) in by_lattice(rescored)


@pytest.mark.parametrize(("max_nodes", "narrower"), [(100, True), (400, False)])
def test_a_lattice_that_would_become_too_large_is_rescored_in_a_narrower_beam(scorer, max_nodes, narrower):
    links = [(node, node + 1, word, -20.0 * "abc".index(word), 0.0) for node in range(5) for word in "abc"]
    notes = []
    lattice = lattice_of(links)
    rescored = rescore_with_network(
        lattice, scorer, 0.5, HistoryOptions(order=0, beam=11.0), max_nodes, note=notes.append
    )
    beam = 5.5 if narrower else 11.0
    expected = rescore_with_network(lattice, scorer, 0.5, HistoryOptions(order=0, beam=beam))
    assert by_lattice(rescored) == by_lattice(expected)
    end = f"more than {max_nodes} nodes after rescoring; a beam of 5.5 instead of 11"
    assert [note.partition(": ")[2] for note in notes] == [end] * narrower


@pytest.mark.filterwarnings("error")
def test_links_of_probability_zero_are_left_out_at_each_weight(scorer):
    lattice = lattice_of([(0, 1, "a", -1.0, -1.0), (0, 1, "b", -1.0, -np.inf)])
    for weight in (0.0, 0.5, 1.0):
        assert by_lattice(rescore_with_network(lattice, scorer, weight)).keys() == {("a",)}
