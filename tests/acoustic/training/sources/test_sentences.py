"""Tagging and language modelling of small texts by recurrent networks, from reader to writer."""

import numpy as np
import pytest

from acoustic.actions import make_action
from acoustic.actions.base import CommonSettings
from acoustic.engine.engine import Engine
from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from acoustic.training.evaluation import sum_figures
from acoustic.training.options import TrainingOptions
from acoustic.training.sgd import train
from readers.config.config import Config
from readers.language.vocabulary import VocabularyWord, write_vocabulary
from readers.minibatches.base import open_reader

pytestmark = pytest.mark.slow

CITIES = ["boston", "denver", "dallas"]
WORDS = ["BOS", "EOS", "fly", "from", "to", "<unk>", *CITIES]
LABELS = ["O", "B-from", "B-to"]


def recurrent(features: int, labels: int, hidden: int = 12) -> Network:
    """h(t) = tanh(W x(t) + R h(t-1)), V h(t)."""
    network = Network(seed=1)
    add = network.add

    def matrix(name: str, rows: int, cols: int):
        return add("LearnableParameter", name, rows=rows, cols=cols, initValueScale=3)

    x, y = add("InputValue", "features", rows=features), add("InputValue", "labels", rows=labels)
    past = network.add_node("PastValue", "past", [None], {"rows": hidden, "defaultHiddenActivity": 0.0}).name
    h = add("Tanh", "h", add("Plus", "sum", add("Times", "Wx", matrix("W", hidden, features), x),
                             add("Times", "Rh", matrix("R", hidden, hidden), past)))  # fmt: skip
    network.connect(past, "h")
    out = add("Times", "outputs", matrix("V", labels, hidden), h)
    network.criteria.append(add("CrossEntropyWithSoftmax", "ce", y, out).name)
    network.evaluations.append(add("ErrorPrediction", "err", y, out).name)
    network.validate()
    return network


@pytest.fixture
def queries(tmp_path) -> str:
    """The tag of a city follows from the word before it."""
    rng = np.random.default_rng(0)
    lines: list[str] = []
    for _ in range(40):
        lines += ["BOS O", *["fly O"] * int(rng.integers(0, 3))]
        for word in rng.permutation(["from", "to"])[: rng.integers(1, 3)]:
            lines += [f"{word} O", f"{rng.choice(CITIES)} B-{word}"]
        lines.append("EOS O")
    (tmp_path / "train").write_text("\n".join(lines) + "\n")
    (tmp_path / "test").write_text("BOS O\nto O\ndenver O\nfrom O\ntulsa O\nEOS O\nfly O\nfrom O\nboston O\n")
    (tmp_path / "in").write_text("\n".join(WORDS) + "\n")
    (tmp_path / "out").write_text("\n".join(LABELS) + "\n")
    return f"labelIn=[token={tmp_path}/in;endSequence=EOS]\nlabels=[token={tmp_path}/out]"


def test_words_are_tagged(queries, tmp_path):
    text = f"reader=[\nreaderType=LUSequenceReader\nnbruttsineachrecurrentiter=4\nfile={tmp_path}/train\n{queries}\n]"
    values = TrainingOptions(30, learning_rates_per_sample=0.05, minibatch_size=8, momentum_per_sample=0.9)
    with open_reader(Config.from_text(text, "lu.cntk").block("reader"), 1) as reader:
        result = train(recurrent(len(WORDS), len(LABELS)), reader, values)
    assert result.history[0]["training"]["err"] > 0.05
    assert result.history[-1]["training"]["err"] == 0
    save_model(result.network, tmp_path / "model")
    text = text.replace(f"{tmp_path}/train", f"{tmp_path}/test")
    writer = f"writer=[writerType=LUSequenceWriter;outputs=[file={tmp_path}/tags;token={tmp_path}/out]]"
    text = f"modelPath={tmp_path}/model\noutputNodeNames=outputs:labels\n{text}\n{writer}"
    make_action("write", Config.from_text(text, "w.cntk"), CommonSettings()).run(print, lambda *_, **__: None)
    assert (tmp_path / "tags").read_text() == "O O B-to O B-from O\nO O B-from\n"


def test_words_are_foretold(tmp_path):
    """Which of two words comes last is known from the first of the sentence, and the first is anyone's guess."""
    words = ["</s>", "a", "b", "x", "y", "<unk>"]
    write_vocabulary(tmp_path / "words", [VocabularyWord(word, 1) for word in words])
    rng = np.random.default_rng(0)
    kinds = [("a", "x"), ("b", "y")]
    lines = [f"</s> {first} {last} </s>" for first, last in (kinds[k] for k in rng.permutation([0, 1] * 50))]
    (tmp_path / "text").write_text("\n".join(lines) + "\n")
    text = (
        f"reader=[\nreaderType=LMSequenceReader\nmode=softmax\nfile={tmp_path}/text\nwordclass={tmp_path}/words\n"
        "nbruttsineachrecurrentiter=5\nlabelIn=[labelDim=6]\nlabels=[labelDim=6]\n]"
    )
    values = TrainingOptions(15, learning_rates_per_sample=0.1, minibatch_size=2)
    with open_reader(Config.from_text(text, "lm.cntk").block("reader"), 1) as reader:
        network = train(recurrent(6, 6), reader, values).network
        totals = sum_figures(Engine(network, ["ce"]), reader.minibatches(0, 2), ["ce"])
    assert totals.num_frames == 300
    # Of three words to foretell one has an entropy of ln 2, the others of nothing.
    assert totals.averages()["ce"] == pytest.approx(np.log(2) / 3, abs=0.02)
