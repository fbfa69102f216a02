"""The word scorer against the network's formulas, step by step, and against what the criterion sums up."""

import itertools

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from acoustic.scoring import word_scorer
from acoustic.scoring.word_scorer import WordScorer
from readers.errors import ModelError
from readers.language.vocabulary import VocabularyWord
from readers.language.vocabulary_record import VocabularyRecord
from readers.minibatches.sequence_layout import SequenceLayout

HIDDEN = 3
CLASSES = (0, 0, 1, 1, 1, 2)  # of the words
WORDS = [VocabularyWord(word, 1, of) for word, of in zip(["</s>", "a", "b", "<unk>", "c", "d"], CLASSES)]
SENTENCES = [["a", "b", "c"], [], ["d"], ["a", "zebra", "c", "a", "d"], ["a", "b", "c"]]


def make_network(by_class, seed=0):
    """h(t) = tanh(E x(t) + R h(t-1)), h before the start 0.1; a full softmax, or one over classes."""
    rng = np.random.default_rng(seed)
    size = len(WORDS)
    network = Network("double", threads=1)

    def parameter(name, rows, cols):
        network.add("Parameter", name, rows=rows, cols=cols)
        network.set_value(name, rng.normal(size=(rows, cols)))
        return name

    network.add("Input", "features", rows=size)
    network.add("Input", "labels", rows=4 if by_class else size)
    e = network.add("LookupTable", "e", parameter("E", HIDDEN, size), "features")
    past = network.add_node("PastValue", "past", [None], {"rows": HIDDEN})
    total = network.add("Plus", "p", e, network.add("Times", "r", parameter("R", HIDDEN, HIDDEN), "past"))
    network.connect(past, network.add("Tanh", "h", total))
    if by_class:
        parameter("W", HIDDEN, size)
        network.add("Times", "q", parameter("C", max(CLASSES) + 1, HIDDEN), "h")
        cost = network.add("ClassBasedCrossEntropyWithSoftmax", "cost", "labels", "h", "W", "q")
    else:
        network.add("Times", "z", parameter("W", size, HIDDEN), "h")
        cost = network.add("CrossEntropyWithSoftmax", "cost", "labels", "z")
    network.criteria.append(cost.name)
    return network


def save(network, tmp_path):
    save_model(network, tmp_path / "model")
    return tmp_path / "model"


def ids_of(sentence):
    numbers = {word.word: number for number, word in enumerate(WORDS)}
    return [0, *(numbers.get(word, numbers["<unk>"]) for word in sentence), 0]


def by_hand(network, sentence):
    """ln P of each word and of </s>, one step at a time."""
    value = {node.name: node.value for node in network.parameters()}
    ids, h, logs = ids_of(sentence), np.full(HIDDEN, 0.1), []
    for before, word in itertools.pairwise(ids):
        h = np.tanh(value["E"][:, before] + value["R"] @ h)
        if "C" in value:
            of_class = np.exp(value["C"] @ h)
            members = [k for k, number in enumerate(CLASSES) if number == CLASSES[word]]
            inside = np.exp(value["W"].T @ h)
            logs.append(np.log(of_class[CLASSES[word]] / of_class.sum() * inside[word] / inside[members].sum()))
        else:
            scores = np.exp(value["W"] @ h)
            logs.append(np.log(scores[word] / scores.sum()))
    return logs


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("parallel", [1, 2, 32])
def test_scores_by_hand(tmp_path, monkeypatch, by_class, parallel):
    monkeypatch.setattr(word_scorer, "PARALLEL", parallel)
    network = make_network(by_class)
    scorer = WordScorer(save(network, tmp_path), WORDS)
    counts = []
    found = scorer.score(SENTENCES, lambda done, total: counts.append((done, total)))
    assert counts[-1] == (4, 4)  # one sentence is there twice
    for sentence, logs in zip(SENTENCES, found):
        np.testing.assert_allclose(logs, by_hand(network, sentence), rtol=1e-10)
    assert scorer.is_known("a")
    assert not scorer.is_known("zebra")


@pytest.mark.parametrize("by_class", [False, True])
def test_the_probabilities_of_all_words_sum_to_one(tmp_path, by_class):
    scorer = WordScorer(save(make_network(by_class, seed=2), tmp_path), WORDS)
    ends = scorer.score([["a", "d"]])[0][-1]
    others = [scorer.score([["a", "d", word.word]])[0][-2] for word in WORDS if word.word != "</s>"]
    assert np.exp([ends, *others]).sum() == pytest.approx(1)


@pytest.mark.parametrize("by_class", [False, True])
def test_the_sum_is_the_criterion_of_the_network(tmp_path, by_class):
    network = make_network(by_class, seed=1)
    scorer = WordScorer(save(network, tmp_path), WORDS)
    engine = Engine(network, ["cost"])
    for sentence in SENTENCES:
        ids = np.array(ids_of(sentence))
        features = np.eye(len(WORDS))[:, ids[:-1]]
        if by_class:
            of = np.array(CLASSES)[ids[1:]]
            labels = np.array([ids[1:], of, np.searchsorted(CLASSES, of), np.searchsorted(CLASSES, of, "right")])
        else:
            labels = np.eye(len(WORDS))[:, ids[1:]]
        layout = SequenceLayout.of_lengths([len(ids) - 1])
        engine.forward(
            {"features": np.asfortranarray(features), "labels": np.asfortranarray(labels, float)}, layout=layout
        )
        assert -scorer.score([sentence])[0].sum() == pytest.approx(engine.value("cost").item(), rel=1e-10)


def test_an_unknown_word_needs_the_unknown_word_in_the_vocabulary(tmp_path):
    scorer = WordScorer(save(make_network(True), tmp_path), WORDS, unknown="<UNK>")
    with pytest.raises(ModelError, match="word 'zebra' is not in the vocabulary; expected one that is, or '<UNK>'"):
        scorer.score([["a"], ["zebra"]])


def test_rows_without_a_word_are_only_for_a_model_that_knows_its_words(tmp_path):
    network = make_network(False)
    with pytest.raises(ModelError, match="model: its input is for 6 words; expected 5, the vocabulary"):
        WordScorer(save(network, tmp_path), WORDS[:-1])
    network.vocabularies |= dict.fromkeys(("features", "labels"), VocabularyRecord.of_words(WORDS[:-1]))
    scorer = WordScorer(save(network, tmp_path))
    engine, ids = Engine(network, ["cost"]), np.array([scorer._begin, 2, scorer._end])
    one_hot = np.asfortranarray(np.eye(len(WORDS))[:, ids])
    engine.forward({"features": one_hot[:, :-1], "labels": one_hot[:, 1:]}, layout=SequenceLayout.of_lengths([2]))
    assert -scorer.score([[WORDS[2].word]])[0].sum() == pytest.approx(engine.value("cost").item(), rel=1e-10)
    with pytest.raises(ModelError, match="model: its input is for 6 words; expected 4, the vocabulary"):
        WordScorer(tmp_path / "model", WORDS[:-2])


def test_what_is_no_language_model_over_the_vocabulary_is_refused(tmp_path):
    path = save(make_network(True), tmp_path)
    with pytest.raises(ModelError, match="model: its input is for 6 words; expected 5, the vocabulary"):
        WordScorer(path, WORDS[:-1])
    with pytest.raises(ModelError, match=r"model: '<s>' is not in the vocabulary; expected the sentence marks"):
        WordScorer(path, WORDS, begin="<s>")
    finer = [VocabularyWord(word.word, 1, number) for number, word in enumerate(WORDS)]
    with pytest.raises(ModelError, match="model: has 3 word classes; expected at least 6"):
        WordScorer(path, finer)
    network = make_network(True)
    network.criteria.clear()
    with pytest.raises(ModelError, match="model: no criterion of a language model"):
        WordScorer(save(network, tmp_path), WORDS)


@pytest.mark.parametrize("most", [1, 3, 512])
@pytest.mark.parametrize("by_class", [False, True])
def test_a_tree_has_the_scores_of_its_sentences(by_class, most, tmp_path, monkeypatch):
    monkeypatch.setattr(word_scorer, "MOST_CONTEXTS", most)
    scorer = WordScorer(save(make_network(by_class), tmp_path), WORDS)
    sentences = [*SENTENCES, ["a", "b", "a", "c"], ["b", "b"], ["a", "b", "c", "zebra"]]
    nodes: dict[tuple, int] = {}
    parents, words = [], []
    for sentence in sentences:
        for length in range(len(sentence) + 1):
            key = (*sentence, None)[: length + 1]
            if key not in nodes:
                nodes[key] = len(nodes)
                parents.append(nodes.get(key[:-1], -1))
                words.append(key[-1])
    logs = scorer.score_tree(parents, words)
    for sentence, expected in zip(sentences, scorer.score(sentences)):
        path = [nodes[(*sentence, None)[: length + 1]] for length in range(len(sentence) + 1)]
        np.testing.assert_allclose(logs[path], expected, rtol=1e-12)
    assert scorer.score_tree([], []).shape == (0,)
    np.testing.assert_array_equal(scorer.score(sentences)[0], scorer.score([sentences[0]])[0])
