"""Class-based models and conditional random fields, from reader to trained network; runs that stop and go on."""

from dataclasses import replace

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import build_simple_network, simple_network_options
from acoustic.engine.engine import Engine
from acoustic.engine.inputs import check_inputs
from acoustic.network.model_file import load_model
from acoustic.network.network import Network
from acoustic.training.evaluation import sum_figures
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import RULES
from acoustic.training.sgd import train
from readers.config.config import Config
from readers.errors import ModelError
from readers.language.vocabulary import VocabularyWord, write_vocabulary
from readers.minibatches.base import open_reader
from tests.acoustic.training.sources.test_utterances import stopped

pytestmark = pytest.mark.slow

WORDS = ["</s>", "a", "b", "x", "y", "<unk>"]
CLASSES = [0, 1, 1, 2, 2, 2]


def network(text):
    return build_simple_network(simple_network_options(Config.from_text(f"B=[{text}]", "net.cntk").block("B")), seed=1)


def class_network():
    return network("rnnType=CLASSLM; recurrentLayer=1; layerSizes=6:10:6; nbrClass=3; initValueScale=4")


def reader_of(folder, more="", words=None):
    """Sentences of two words, of which the first is anyone's guess and says which the second is."""
    text = (
        f"reader=[\nreaderType=LMSequenceReader\nfile={folder}/text\nwordclass={words or folder / 'words'}\n"
        f"nbruttsineachrecurrentiter=5\nlabelIn=[labelDim=6]\nlabels=[labelDim=6]\n{more}\n]"
    )
    return open_reader(Config.from_text(text, "lm.cntk").block("reader"), 1)


@pytest.fixture
def sentences(tmp_path):
    write_vocabulary(tmp_path / "words", [VocabularyWord(word, 1, k) for word, k in zip(WORDS, CLASSES)])
    kinds, rng = [("a", "x"), ("b", "y")], np.random.default_rng(0)
    lines = [f"</s> {first} {last} </s>" for first, last in (kinds[k] for k in rng.permutation([0, 1] * 50))]
    (tmp_path / "text").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.parametrize(("rule", "rate"), [("none", 0.1), ("adagrad", 0.1)])
def test_words_are_foretold_by_class(sentences, rule, rate):
    options = TrainingOptions(20, learning_rates_per_sample=rate, minibatch_size=2, rule=RULES[rule]())
    with reader_of(sentences) as reader:
        trained = train(class_network(), reader, options).network
        (name,) = trained.criteria
        totals = sum_figures(Engine(trained, [name]), reader.minibatches(0, 2), [name])
    # Of three words to foretell one has an entropy of ln 2, the others of nothing.
    assert totals.averages()[name] == pytest.approx(np.log(2) / 3, abs=0.02)


def test_a_model_knows_its_words_and_refuses_others(sentences, tmp_path):
    path = tmp_path / "model"
    with reader_of(sentences) as reader:
        options = TrainingOptions(1, learning_rates_per_sample=0.1, minibatch_size=2)
        train(class_network(), reader, options, reader, model_path=path)
    model = load_model(path)
    assert set(model.vocabularies) == {"features", "labels"}
    assert model.vocabularies["labels"].entries() == [VocabularyWord(word, 1, k) for word, k in zip(WORDS, CLASSES)]
    engine = Engine(model, model.criteria)
    with reader_of(sentences, words=path) as reader:  # the model in place of the vocabulary
        check_inputs(engine, reader)
        from_model = sum_figures(engine, reader.minibatches(0, 2), model.criteria).averages()
    with reader_of(sentences) as reader:
        assert sum_figures(engine, reader.minibatches(0, 2), model.criteria).averages() == from_model
    text = (sentences / "words").read_text()
    for old, new, message in (
        (
            "\tb\t",
            "\tz\t",
            r"lm\.cntk:6: reader: features: word 2 is 'z'; expected 'b', with which .*model was",
        ),
        ("\tx\t2", "\tx\t1", r"word 'x' is in class 1; expected class 2, with which"),
    ):
        (sentences / "words").write_text(text.replace(old, new))
        with reader_of(sentences) as reader, pytest.raises(ModelError, match=message):
            check_inputs(engine, reader)


def test_a_condition_tells_the_first_word(sentences):
    lines = (sentences / "text").read_text().splitlines()
    (sentences / "conditions").write_text("".join(f"{int('a' in line)} {int('b' in line)}\n" for line in lines))
    text = "rnnType=CLSTM; auxfeatdim=2; lookupTableOrder=1; layerSizes=6:5:10:6; nbrClass=3; initValueScale=4"
    options = TrainingOptions(20, learning_rates_per_sample=0.1, minibatch_size=3, rule=RULES["adagrad"]())
    with reader_of(sentences, f"binaryFeature=[file={sentences}/conditions; dim=2]") as reader:
        trained = train(network(text), reader, options).network
        (name,) = trained.criteria
        totals = sum_figures(Engine(trained, [name]), reader.minibatches(0, 3), [name])
    assert totals.averages()[name] < 0.05  # without the condition at least ln 2 / 3


def test_a_probabilistic_model_sees_the_word_three_places_before(sentences):
    kinds = {"a": "</s> a <unk> <unk> x </s>", "b": "</s> b <unk> <unk> y </s>"}
    lines = (sentences / "text").read_text().splitlines()
    (sentences / "text").write_text("".join(f"{kinds[line.split()[1]]}\n" for line in lines))
    options = TrainingOptions(12, learning_rates_per_sample=0.1, minibatch_size=5, rule=RULES["adagrad"]())
    with reader_of(sentences, "mode=softmax") as reader:
        trained = train(network("rnnType=NPLM; lookupTableOrder=1; layerSizes=6:5:10:6"), reader, options).network
        (name,) = trained.criteria
        totals = sum_figures(Engine(trained, [name]), reader.minibatches(0, 5), [name])
    assert totals.averages()[name] == pytest.approx(np.log(2) / 5, abs=0.02)  # only the first word is anyone's guess


def test_pieces_of_sentences_have_the_value_of_the_whole(sentences):
    net = class_network()
    (name,) = net.criteria
    with reader_of(sentences) as reader:
        sums = [sum_figures(Engine(net, [name]), reader.minibatches(0, size), [name]) for size in (1, 2, 10)]
    assert {one.num_frames for one in sums} == {300}
    np.testing.assert_allclose([one.figures[name] for one in sums], sums[0].figures[name], rtol=1e-5)


def test_a_run_that_stops_and_goes_on_is_one_that_did_not_stop(sentences):
    """Momentum, of which columns that are not touched keep theirs, is in the checkpoint."""
    results = []
    for name, parts in (("whole", [4]), ("parts", [1, 3, 4])):
        for until in parts:
            options = TrainingOptions(4, learning_rates_per_sample=0.05, minibatch_size=2, momentum_per_sample=0.9)
            path = sentences / name / "model"
            with reader_of(sentences) as reader:
                if until < 4:
                    reader.minibatches = stopped(reader.minibatches, until)
                    with pytest.raises(KeyboardInterrupt):
                        train(class_network(), reader, options, model_path=path)
                else:
                    results.append(train(class_network(), reader, options, model_path=path).network)
    for node in results[0].parameters():
        np.testing.assert_array_equal(node.value, results[1][node.name].value, err_msg=node.name)


def test_pairs_of_labels_are_learnt(tmp_path):
    """The label of a word that says nothing is the opposite of the label before: only pairs of labels know."""
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(30):
        first = int(rng.integers(0, 2))
        lines += [f"{'pq'[first]} {'AB'[first]}", *(f"z {'AB'[(first + k) % 2]}" for k in range(1, 5)), "EOS O"]
    (tmp_path / "text").write_text("\n".join(lines) + "\n")
    (tmp_path / "in").write_text("p\nq\nz\nEOS\n")
    (tmp_path / "out").write_text("A\nB\nO\n")
    text = (
        f"reader=[\nreaderType=LUSequenceReader\nnbruttsineachrecurrentiter=4\nfile={tmp_path}/text\n"
        f"labelIn=[token={tmp_path}/in;endSequence=EOS]\nlabels=[token={tmp_path}/out]\n]"
    )
    net = Network(seed=1)
    net.add("SparseInput", "features", rows=4)
    net.add("SparseInput", "labels", rows=3)
    net.add("Times", "scores", net.add("Parameter", "W", rows=3, cols=4), "features")
    net.add("CRF", "ce", "labels", "scores", net.add("Parameter", "pairs", rows=3, cols=3))
    net.add("ErrorPrediction", "err", "labels", net.add("SequenceDecoder", "best", "scores", "pairs"))
    net.criteria, net.evaluations = ["ce"], ["err"]
    options = TrainingOptions(30, learning_rates_per_sample=0.05, minibatch_size=10, momentum_per_sample=0.9)
    lines = []
    with open_reader(Config.from_text(text, "lu.cntk").block("reader"), 1) as reader:
        result = train(net, reader, options, log=lines.append)
        assert not any("ce: " in line and "warning" in line for line in lines)
        train(net, reader, replace(options, max_epochs=1, minibatch_size=2), log=lines.append)
        assert "longer than minibatchSize 2, and each piece of them counts as one" in "".join(lines)
    assert result.history[0]["training"]["err"] > 0.2
    assert result.history[-1]["training"]["err"] == 0
    pairs = net["pairs"].value
    assert pairs[0, 1] > pairs[0, 0] + 1
    assert pairs[1, 0] > pairs[1, 1] + 1
