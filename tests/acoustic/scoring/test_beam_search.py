"""Beam search over an encoder and decoder: what an exhaustive search finds, in any company."""

import itertools

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.pair_engine import PairEngine
from acoustic.scoring.beam_search import BeamSearch
from readers.errors import ModelError
from readers.minibatches.sequence_pairs import PairLayout
from tests.acoustic.engine.test_pair_engine import SIZE, SOURCES, TARGETS, build, layout_of, pack

BEGIN, END = 0, 1
INPUTS = np.arange(TARGETS)
LIMIT = 2


def sources(lengths, seed=3):
    rng = np.random.default_rng(seed)
    return [2 * rng.standard_normal((SOURCES, length)) for length in lengths]


def score(network, source, words, finished=True):
    """Log probability of a sequence of outputs, by one pass over all of it."""
    said = [*words, END] if finished else list(words)
    given = np.eye(TARGETS)[:, [BEGIN, *words][: len(said)]]
    layout = PairLayout(layout_of([[source.shape[1]]]), layout_of([[len(said)]]))
    engine = PairEngine(network, ["J"])
    engine.forward({"source": source, "words": given, "labels": np.eye(TARGETS)[:, said]}, layout=layout)
    return -engine.value("J").item()


def exhaustive(network, source):
    """The best sequence of at most LIMIT words that comes to an end."""
    others = [word for word in range(TARGETS) if word != END]
    every = [words for count in range(LIMIT + 1) for words in itertools.product(others, repeat=count)]
    scores = [score(network, source, words) for words in every]
    return every[int(np.argmax(scores))], max(scores)


@pytest.mark.parametrize("context", [False, True])
def test_a_wide_beam_finds_the_most_probable_sequence(context):
    network = build(context)
    network.set_value("V", 3 * network["V"].value)
    some = sources([2, 1, 3])
    columns, layout = pack([[2], [1], [3]], some)
    search = BeamSearch(network, "z", BEGIN, END, INPUTS, beam=100, width=40, max_length=LIMIT + 1)
    found = search({"source": columns}, layout)
    for source, hypotheses in zip(some, found):
        best = next(one for one in hypotheses if one.finished)
        words, expected = exhaustive(network, source)
        assert best.words == words
        assert best.score == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("width", [1, 3])
def test_scores_are_those_of_the_sequences_and_company_makes_no_difference(width):
    network = build()
    some = sources([4, 2, 1, 2])
    columns, layout = pack([[4], [2, 1], [2]], some)
    search = BeamSearch(network, "z", BEGIN, END, INPUTS, beam=3, width=width, max_length=5)
    together = search({"source": columns}, layout)
    assert [len(one) <= max(width, 1) or one for one in together] == [True] * 4
    for source, hypotheses in zip(some, together):
        alone = search({"source": source}, layout_of([[source.shape[1]]]))[0]
        assert [one.words for one in alone] == [one.words for one in hypotheses]
        assert [one.score for one in hypotheses] == sorted((one.score for one in hypotheses), reverse=True)
        for one in hypotheses:
            assert one.score == pytest.approx(score(network, source, one.words, one.finished), abs=1e-9)


def test_one_hypothesis_takes_the_best_word_each_time():
    network = build()
    (source,) = sources([3])
    found = BeamSearch(network, "z", BEGIN, END, INPUTS, width=1, max_length=4)({"source": source}, layout_of([[3]]))
    words = []
    while len(words) < 4:
        scores = [score(network, source, [*words, word], False) for word in range(TARGETS)]
        if int(np.argmax(scores)) == END:
            break
        words.append(int(np.argmax(scores)))
    assert found[0][0].words == tuple(words)


def test_probabilities_serve_as_well():
    network = build()
    network.add("Softmax", "p", "z")
    network.add("LogSoftmax", "l", "z")
    (source,) = sources([3])
    found = [
        BeamSearch(network, name, BEGIN, END, INPUTS, beam=2)({"source": source}, layout_of([[3]]))[0]
        for name in ("z", "p", "l")
    ]
    for other in found[1:]:
        assert [one.words for one in other] == [one.words for one in found[0]]
        np.testing.assert_allclose([one.score for one in other], [one.score for one in found[0]], atol=1e-9)


CLASSES = np.array([0, 0, 1, 1, 2])


def in_classes(spare=1):
    """A decoder that is trained on words in classes, of which the last are empty."""
    network = build()
    network.criteria.clear()
    top = network["z"].operands[1].name
    network.add("Input", "table", rows=4)
    network.add("Parameter", "W", rows=SIZE, cols=TARGETS)
    network.add("Times", "scores", network.add("Parameter", "Q", rows=3 + spare, cols=SIZE).name, top)
    network.criteria.append(network.add("ClassBasedCrossEntropyWithSoftmax", "C", "table", top, "W", "scores").name)
    network.add("TransposeTimes", "words in classes", "W", top)
    rng = np.random.default_rng(0)
    for name in "WQ":
        network.set_value(name, 2 * rng.standard_normal(network[name].value.shape))
    return network


def test_words_in_classes_have_the_probabilities_that_they_are_trained_with():
    network = in_classes()
    firsts = np.searchsorted(CLASSES, CLASSES)
    table = np.stack([np.arange(TARGETS), CLASSES, firsts, firsts + np.bincount(CLASSES)[CLASSES]])
    (source,) = sources([3])
    search = BeamSearch(network, "words in classes", BEGIN, END, INPUTS, classes=CLASSES, beam=9, width=6, max_length=4)
    found = search({"source": source}, layout_of([[3]]))[0]
    assert len(found) > 2
    for one in found:
        said = [*one.words, END] if one.finished else list(one.words)
        layout = PairLayout(layout_of([[3]]), layout_of([[len(said)]]))
        engine = PairEngine(network, ["C"])
        given = np.eye(TARGETS)[:, [BEGIN, *one.words][: len(said)]]
        engine.forward({"source": source, "words": given, "table": table[:, said]}, layout=layout)
        assert one.score == pytest.approx(-engine.value("C").item(), abs=1e-9)


def test_words_in_classes_need_a_vocabulary_that_fits():
    with pytest.raises(ModelError, match="words are in classes; expected a vocabulary with classes"):
        BeamSearch(in_classes(), "words in classes", BEGIN, END, INPUTS)
    with pytest.raises(ModelError, match="has 2 word classes; expected at least 3, the vocabulary's"):
        BeamSearch(in_classes(-1), "words in classes", BEGIN, END, INPUTS, classes=CLASSES)


def test_what_is_no_pair_is_refused():
    network = build()
    with pytest.raises(ModelError, match="takes nothing from an encoder"):
        BeamSearch(network, "encoded", BEGIN, END, INPUTS)
    with pytest.raises(ModelError, match="has 5 rows; expected 4, the words of the target"):
        BeamSearch(network, "z", BEGIN, END, INPUTS[:4])
    with pytest.raises(ModelError, match="depends on inputs words, labels; expected one, the previous word"):
        BeamSearch(network, network.add("Plus", "odd", "z", "labels").name, BEGIN, END, INPUTS)
    network.set_value("V", np.full((TARGETS, 4), np.nan))
    with pytest.raises(ModelError, match="values that are not finite"):
        BeamSearch(network, "z", BEGIN, END, INPUTS)({"source": np.ones((SOURCES, 1))}, layout_of([[1]]))


def test_states_follow_the_slots_that_are_chosen():
    """A recurrent engine whose slots are exchanged goes on as if each had been the other from the beginning."""
    network = build(context=False)
    engine = Engine(network, ["encoded"])
    first, second = sources([3, 3])
    whole, layout = pack([[3], [3]], [first, second])
    engine.forward({"source": whole}, layout=layout)
    expected = engine.value("encoded")[:, [4, 5]].copy()
    parts = layout_of([[3], [3]])
    cut = lambda steps: type(parts)(2, len(steps), parts.starts[steps], parts.ends[steps], parts.gaps[steps])  # noqa: E731
    other = Engine(network, ["encoded"])
    other.forward({"source": np.asfortranarray(whole[:, :4])}, layout=cut([0, 1]))
    other.reorder([1, 0])
    other.forward({"source": np.asfortranarray(whole[:, [5, 4]])}, layout=cut([2]))
    np.testing.assert_allclose(other.value("encoded"), expected[:, [1, 0]], rtol=1e-12)
