"""Rescored lattices against every path of the lattice that they come from, scored by the definition of an n-gram."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder.lattices.determinise import determinise
from decoder.lattices.links import weigh
from decoder.lattices.nbest import nbest
from decoder.lattices.posteriors import best_path, posteriors
from decoder.lattices.rescoring import rescore_lattice
from decoder.lm.collection import interpolated
from decoder.lm.evaluation import sentence_logs
from decoder.lm.language_model import LN_10, LanguageModel
from decoder.results.outputs import slf_lattice
from decoder.scoring.error_counts import SENTENCE_MARKS
from readers.errors import GraphError
from readers.results.lattice import SENT_END, numbered
from tests.decoder.lattices.small_lattices import SCALES, lattice_of, paths, random_lattice, with_segments
from tests.decoder.lm.test_language_model import make_arpa, twin_log10
from tests.decoder.search.test_decoder import random_case

SEEDS = range(30)


def random_orders(seed, order, vocabulary=("<s>", "</s>", "<unk>", "a", "b")):
    """Listed n-grams with holes, as dicts from words to (log10 P, log10 back-off); c is not among the words."""
    rng = np.random.default_rng(seed)
    orders = []
    for k in range(1, order + 1):
        listed = [words for words in itertools.product(vocabulary, repeat=k) if k == 1 or rng.random() < 0.5]
        orders.append({words: tuple(-2 * rng.random(2)) for words in listed})
    return list(vocabulary), orders


def ln_p(orders, words):
    """By the definition: words of a path without marks, and </s>."""
    known = [word if (word,) in orders[0] else "<unk>" for word in words]
    sentence, total = ["<s>", *known, "</s>"], 0.0
    for k in range(1, len(sentence)):
        total += twin_log10(orders, sentence[:k], sentence[k])
    return LN_10 * total


def plain(words):
    return tuple(word for word in words if word not in SENTENCE_MARKS)


def described(lattice):
    """Of every path: what its links say, when, with which acoustic scores, variants and segments; its sum of lm."""
    found, rows = [], lattice.segments.rows()
    for path, _ in paths(lattice):
        steps = tuple(
            (
                lattice.word[k],
                float(lattice.time[lattice.start[k]]),
                float(lattice.time[lattice.end[k]]),
                float(lattice.acoustic[k]),
                int(lattice.variant[k]),
                rows[k],
            )
            for k in path
        )
        found.append((steps, float(lattice.lm[list(path)].sum())))
    return sorted(found, key=repr)


def with_everything(seed):
    """A random lattice whose links have variants and segments, one with sentence marks at its ends for odd seeds."""
    lattice = random_lattice(seed)
    words = list(lattice.word)
    if seed % 2:
        last = next(node for node in range(lattice.num_nodes) if node not in lattice.start)
        first = next(node for node in range(lattice.num_nodes) if node not in lattice.end)
        for k in range(lattice.num_links):
            if lattice.end[k] == last:
                words[k] = ("</s>", "!SENT_END")[k % 2]
            elif lattice.start[k] == first and k % 2:
                words[k] = "!SENT_START"
    label, names = numbered(words)
    lattice = replace(lattice, label=label, words=names, variant=np.arange(lattice.num_links, dtype=np.int32))
    return with_segments(lattice, [((f"s{k}", 0.25, None),) if k % 3 else None for k in range(lattice.num_links)])


def compare(lattice, orders, found):
    before, after = described(lattice), described(found)
    assert [steps for steps, _ in after] == [steps for steps, _ in before]
    for steps, lm in after:
        assert lm == pytest.approx(ln_p(orders, plain(step[0] for step in steps)), abs=1e-4)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_path_has_the_score_of_its_words(seed, order):
    lattice, (vocabulary, orders) = with_everything(seed), random_orders(seed, order)
    found = rescore_lattice(lattice, LanguageModel.from_arpa(make_arpa(vocabulary, orders)))
    compare(lattice, orders, found)
    assert (found.start < found.end).all()  # nodes are in order
    assert found.utterance == lattice.utterance
    assert {name: getattr(found, name) for name in SCALES} == SCALES


@st.composite
def layered(draw):
    """Lattices of a few layers, all nodes of which lead to the next."""
    sizes = [1, *draw(st.lists(st.integers(1, 3), max_size=3)), 1]
    begin = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    links = []
    for k in range(len(sizes) - 1):
        for first in range(begin[k], begin[k + 1]):
            for last in range(begin[k + 1], begin[k + 2]):
                for word in draw(st.sets(st.sampled_from(["a", "b", "c", "!NULL", "<s>"]), min_size=1, max_size=2)):
                    links.append((first, last, word, -float(len(links)), draw(st.floats(-9, 0))))
    times = [float(k) for k, size in enumerate(sizes) for _ in range(size)]
    return lattice_of(links, times)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(layered(), st.integers(0, 2**16), st.integers(1, 4))
def test_every_path_of_any_lattice(lattice, seed, order):
    vocabulary, orders = random_orders(seed, order)
    compare(lattice, orders, rescore_lattice(lattice, LanguageModel.from_arpa(make_arpa(vocabulary, orders))))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_second_time_changes_nothing(seed):
    model = LanguageModel.from_arpa(make_arpa(*random_orders(seed, 3)))
    once = rescore_lattice(with_everything(seed), model)
    again = rescore_lattice(once, model)
    assert (again.num_nodes, again.num_links) == (once.num_nodes, once.num_links)
    assert [steps for steps, _ in described(again)] == [steps for steps, _ in described(once)]
    assert [lm for _, lm in described(again)] == pytest.approx([lm for _, lm in described(once)], abs=1e-9)
    assert posteriors(again).total == pytest.approx(posteriors(once).total, abs=1e-9)


def test_a_node_for_each_history():
    """A bigram needs the last word: two words before one make two nodes, for a unigram one."""
    lattice = lattice_of([(0, 1, "a", -1, 0), (0, 1, "b", -1, 0), (1, 2, "a", -1, 0), (2, 3, "!NULL", 0, 0)])
    orders = [{("<s>",): (-99, 0), ("</s>",): (-1, 0), ("a",): (-1, -0.5), ("b",): (-0.5, -0.25)}]
    orders += [{("a", "a"): (-0.125, 0.0), ("a", "</s>"): (-2.0, 0.0)}]
    model = LanguageModel.from_arpa(make_arpa(["<s>", "</s>", "a", "b"], orders))
    found = rescore_lattice(lattice, model)
    assert found.num_nodes == 5
    assert found.word == ["a", "b", "a", "a", "!NULL"]
    expected = [-1.0, -0.5, -0.125 - 2, -0.25 - 1 - 2, 0.0]  # </s> on the last link that has a word
    assert found.lm.tolist() == pytest.approx([LN_10 * value for value in expected], abs=1e-6)
    assert {name: getattr(found, name) for name in SCALES} == SCALES
    single = LanguageModel.from_arpa(
        make_arpa(["<s>", "</s>", "a", "b"], [{w: (p, 0) for w, (p, _) in orders[0].items()}])
    )
    assert rescore_lattice(lattice, single).num_nodes == 4


def test_a_mixture_of_models():
    models = [LanguageModel.from_arpa(make_arpa(*random_orders(seed, order))) for seed, order in ((1, 2), (2, 3))]
    mixture, lattice = interpolated(models, [0.25, 0.75]), random_lattice(3)
    for steps, lm in described(rescore_lattice(lattice, mixture)):
        words = plain(step[0] for step in steps)
        assert lm == pytest.approx(-float(mixture.sentence_costs([words])[0].sum()), abs=1e-9)


def test_a_model_without_an_end_of_sentence():
    vocabulary, orders = random_orders(5, 2, ("<s>", "a", "b", "c"))
    found = rescore_lattice(lattice_of([(0, 1, "a", 0, -7), (1, 2, "</s>", 0, 0)]), _model(vocabulary, orders))
    assert found.lm.tolist() == pytest.approx([LN_10 * twin_log10(orders, ["<s>"], "a"), 0.0], abs=1e-5)


def _model(vocabulary, orders):
    return LanguageModel.from_arpa(make_arpa(vocabulary, orders))


UNIGRAMS = {("<s>",): (-99, 0), ("</s>",): (-1, 0), ("a",): (-1, 0), ("b",): (-99, 0)}


def test_what_the_model_rules_out_is_left_out():
    lattice = lattice_of([(0, 1, "a", 0, 0), (0, 2, "a", 0, 0), (1, 3, "b", 0, 0), (2, 3, "a", 0, -math.inf)])
    found = rescore_lattice(lattice, _model(["<s>", "</s>", "a", "b"], [UNIGRAMS]))
    assert found.word == ["a", "a"]  # what only leads to b has gone, what the old model ruled out is possible again
    assert found.lm.tolist() == pytest.approx([-LN_10, -2 * LN_10])


def with_silence(words):
    """Sentences between words of silence, as a search writes the output symbols of <s> and </s>."""
    links = [(k, k + 1, word, -1, -5) for k, word in enumerate(["h#", *words, "h#"])]
    lattice = lattice_of(links, silence={"sil": ["sil[2]", "sil[3]"]})
    quiet, loud = (("sil[2]", 0.25, None), ("sil[3]", 0.25, None)), (("sil[2]", 0.25, None), ("a[2]", 0.25, None))
    return with_segments(lattice, [quiet if word == "h#" else loud for word in lattice.word])


def test_words_of_silence_cost_nothing_unless_the_model_has_them():
    lattice = with_silence(["a", "a"])
    found = rescore_lattice(lattice, _model(["<s>", "</s>", "a", "b"], [UNIGRAMS]))
    assert found.word == lattice.word
    assert found.lm.tolist() == pytest.approx([0, -LN_10, -2 * LN_10, 0])
    known = {**UNIGRAMS, ("h#",): (-2, 0)}
    found = rescore_lattice(lattice, _model(["<s>", "</s>", "a", "b", "h#"], [known]))
    assert found.lm.tolist() == pytest.approx([-2 * LN_10, -LN_10, -LN_10, -3 * LN_10])
    unknown = {**UNIGRAMS, ("<unk>",): (-2, 0)}
    found = rescore_lattice(lattice, _model(["<s>", "</s>", "a", "b", "<unk>"], [unknown]))
    assert found.lm.tolist() == pytest.approx([0, -LN_10, -2 * LN_10, 0])


def test_a_word_that_is_silence_on_some_links_only_is_a_word():
    lattice = with_silence(["h#"])
    first, _, last = lattice.segments.rows()
    lattice = with_segments(lattice, [first, (("a[2]", 0.5, None),), last])
    with pytest.raises(GraphError, match="1 word not in the language model: h#;"):
        rescore_lattice(lattice, _model(["<s>", "</s>", "a", "b"], [UNIGRAMS]))


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([(0, 1, "a", 0, 0), (0, 1, "x", 0, 0), (0, 1, "y", 0, 0)], "2 words not in the language model: x, y;"),
        ([(0, 1, "b", 0, 0)], "no path from start to end; expected one"),
        ([(0, 1, "a", -math.inf, 0)], "no path from start to end; expected one"),
        ([(0, 1, "</s>", 0, 0), (1, 2, "a", 0, 0)], "'a' comes after the end of the sentence; expected no word there"),
        ([(0, 1, "a", 0, 0), (1, 2, "a", 0, 0), (2, 1, "a", 0, 0), (2, 3, "a", 0, 0)], "has a loop; expected none"),
        ([(0, 2, "a", 0, 0), (1, 2, "a", 0, 0)], "2 start nodes and 1 end nodes; expected one of each"),
        ([(0, 1, "a", math.nan, 0)], "link 0 scores nan; expected a log-likelihood"),
    ],
)
def test_faults(links, message):
    with pytest.raises(GraphError) as caught:
        rescore_lattice(lattice_of(links), _model(["<s>", "</s>", "a", "b"], [UNIGRAMS]))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_more_nodes_than_wanted():
    with pytest.raises(GraphError, match="more than 7 nodes after rescoring; expected a prun"):
        rescore_lattice(random_lattice(5), _model(*random_orders(5, 3)), max_nodes=7)


def test_sentences_of_a_lattice_keep_their_scores_with_the_same_model():
    """Also with a model without histories, and after a sentence without words; determinised, too."""
    rescored = empty = 0
    for seed in range(200):
        case = random_case(seed, sentences=True)
        decoder = case.decoder.with_options(lattice_beam=3.0)
        result = decoder.decode(case.scores)
        if decoder.lm is None or result.lattice is None or -2 not in result.lattice.word:
            continue
        lattice = slf_lattice(result.lattice, decoder.graph, decoder.options)
        total = best_total(lattice)
        assert best_total(rescore_lattice(lattice, decoder.lm)) == pytest.approx(total, abs=1e-4)
        rescored += 1
        for one in nbest(lattice, 3):
            logs = sentence_logs(decoder.lm, one.sentences)
            assert sum(log.sum() for log in logs) == pytest.approx(one.lm, abs=1e-4)
        reduced = determinise(lattice)
        assert best_total(reduced) == pytest.approx(total, abs=1e-4)
        for again in (reduced, determinise(reduced)):
            assert best_total(rescore_lattice(again, decoder.lm)) == pytest.approx(total, abs=1e-4)
        empty += any(reduced.word[link] == SENT_END for link in np.flatnonzero(reduced.start == 0))
    assert rescored >= 5
    assert empty >= 2


def best_total(lattice):
    links = weigh(lattice)
    return sum(links.total[link] for link in best_path(links))
