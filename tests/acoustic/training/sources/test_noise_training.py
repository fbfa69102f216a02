"""Noise-contrastive estimation, from reader to trained language model, against a full softmax; runs that go on."""

from dataclasses import replace

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import build_simple_network, simple_network_options
from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model, save_model
from acoustic.scoring.word_scorer import WordScorer
from acoustic.training.evaluation import sum_figures
from acoustic.training.options import TrainingOptions
from acoustic.training.sgd import train
from readers.config.config import Config
from readers.language.vocabulary import VocabularyWord, write_vocabulary
from readers.minibatches.base import open_reader
from tests.acoustic.training.sources.test_utterances import stopped

pytestmark = pytest.mark.slow

WORDS = ["</s>", *"abcdefghijk"]
SIZE = len(WORDS)
NOISE = 11  # words
LAYERS = f"layerSizes={SIZE}:12:{SIZE}; initValueScale=6"
OPTIONS = TrainingOptions(28, learning_rates_per_sample=(*[0.2] * 18, *[0.05] * 6, 0.01), minibatch_size=8)


def network(text):
    return build_simple_network(simple_network_options(Config.from_text(f"B=[{text}]", "net.cntk").block("B")), seed=1)


def reader_of(folder, mode):
    text = (
        f"reader=[\nreaderType=LMSequenceReader\nfile={folder}/text\nwordclass={folder}/words\nmode={mode}\n"
        f"noise_number={NOISE}\nnbruttsineachrecurrentiter=8\nlabelIn=[labelDim={SIZE}]\nlabels=[labelDim={SIZE}]\n]"
    )
    return open_reader(Config.from_text(text, "lm.cntk").block("reader"), 1)


@pytest.fixture
def sentences(tmp_path):
    """Sentences of seven words, each with a few likely successors."""
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.full(SIZE - 1, 0.2), SIZE)
    lines, counts = [], np.zeros(SIZE, int)
    for _ in range(200):
        word, words = 0, []
        for _ in range(7):
            word = 1 + int(rng.choice(SIZE - 1, p=chances[word]))
            words.append(word)
        counts += np.bincount([0, *words], minlength=SIZE)
        lines.append(" ".join(["</s>", *(WORDS[one] for one in words), "</s>"]))
    (tmp_path / "text").write_text("\n".join(lines) + "\n")
    write_vocabulary(tmp_path / "words", [VocabularyWord(*one, 0) for one in zip(WORDS, counts.tolist())])
    return tmp_path


def value_of(net, reader):
    (name,) = net.criteria
    return sum_figures(Engine(net, [name]), reader.minibatches(0, 8), [name]).averages()[name]


def test_a_language_model_is_as_good_as_with_a_full_softmax(sentences, tmp_path):
    with reader_of(sentences, "softmax") as reader:
        full = train(network(f"rnnType=LSTM; {LAYERS}"), reader, OPTIONS).network
        best = value_of(full, reader)
    with reader_of(sentences, "nce") as reader:
        path = tmp_path / "model"
        net = train(network(f"rnnType=NCELSTM; noise_number={NOISE}; {LAYERS}"), reader, OPTIONS).network
        save_model(net, path)
        assert load_model(path)[net.criteria[0]].settings == {"evalMode": "softmax"}
        found = value_of(net, reader)
        assert best < 0.5 * np.log(SIZE)
        assert found == pytest.approx(best, abs=0.06)  # the perplexity within 6 %
        net[net.criteria[0]].settings["evalMode"] = "unnormalized"
        raw = value_of(net, reader)
        assert raw == pytest.approx(found, abs=0.05)  # the scores are nearly normalised
        save_model(net, tmp_path / "raw")
    lines = [line.split()[1:-1] for line in (sentences / "text").read_text().splitlines()]
    for model, value in ((path, found), (tmp_path / "raw", raw)):
        logs = np.concatenate(WordScorer(model).score(lines))
        assert -logs.mean() == pytest.approx(value, rel=1e-4)


def test_a_run_that_stops_and_goes_on_draws_the_same_noise(sentences):
    results = []
    for name, parts in (("whole", [3]), ("parts", [1, 3])):
        for epochs in parts:
            options, path = replace(OPTIONS, max_epochs=3), sentences / name / "model"
            net = network(f"rnnType=NCELSTM; noise_number={NOISE}; {LAYERS}")
            with reader_of(sentences, "nce") as reader:
                if epochs < 3:
                    reader.minibatches = stopped(reader.minibatches, epochs)
                    with pytest.raises(KeyboardInterrupt):
                        train(net, reader, options, model_path=path)
                else:
                    results.append(train(net, reader, options, model_path=path).network)
    for node in results[0].parameters():
        np.testing.assert_array_equal(node.value, results[1][node.name].value, err_msg=node.name)
