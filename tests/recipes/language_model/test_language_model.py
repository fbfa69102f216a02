"""The recipe of language models: the book's settings, a text whose ends follow from its beginnings, and its parts."""

import json
import math
from random import Random

import numpy as np
import pytest

from decoder.lm.estimation import estimate
from decoder.lm.language_model import LanguageModel
from readers.config.config import load_config
from readers.errors import ConfigError, FormatError
from readers.results.nbest import read_nbest
from recipes.cli.main import main
from recipes.language_model import hypotheses
from recipes.language_model import run as recipe
from recipes.language_model.hypotheses import SimilarWords, recognise, write_lists
from recipes.language_model.rescore import first_score, oracle_score
from recipes.language_model.results import NGRAM, Perplexities, epochs_of
from recipes.language_model.run import CONFIG
from recipes.language_model.texts import split_text, take_texts

CLOSING = {"left": "inda", "right": "indo"}  # three words behind what they follow from


def far_sentences(count, seed=0):
    rng = Random(seed)
    openings = (rng.choice(list(CLOSING)) for _ in range(count))
    return [[opening, *rng.choices("xyz", k=3), CLOSING[opening]] for opening in openings]


def write_sentences(path, sentences):
    path.write_text("".join(" ".join(sentence) + "\n" for sentence in sentences))
    return path


def load(*names):
    return load_config([f"configFile={'+'.join(str(CONFIG / name) for name in names)}"]).block("Train")


def test_rnn_configuration_is_the_books():
    train = load("rnnlm.cntk")
    builder, sgd, control = (
        train.block("SimpleNetworkBuilder"),
        train.block("SGD"),
        train.block("SGD").block("autoAdjust"),
    )
    assert builder.text("rnnType") == "CLASSLM"
    assert builder.text("trainingCriterion").lower() == "classcrossentropywithsoftmax"
    assert builder.text("nodeType") == "Sigmoid"
    assert builder.text("layerSizes") == "10000:200:10000"
    assert (builder.int("vocabSize"), builder.int("nbrClass"), builder.bool("uniformInit")) == (10000, 50, True)
    assert (sgd.int("minibatchSize"), sgd.int("maxEpochs"), sgd.int("numMBsToShowResult")) == (10, 40, 2000)
    assert (sgd.float("learningRatesPerSample"), sgd.float("momentumPerMB")) == (0.1, 0)
    assert (sgd.bool("gradientClippingWithTruncation"), sgd.float("clippingThresholdPerSample")) == (True, 15)
    assert sgd.text("gradUpdateType") == "None"
    assert (control.bool("loadBestModel"), control.bool("continueReduce")) == (True, True)
    assert control.float("reduceLearnRateIfImproveLessThan") == 0.001
    assert control.float("learnRateDecreaseFactor") == 0.5


def test_lstm_configuration_is_the_books():
    train = load("rnnlm.cntk", "lstmlm.cntk")
    builder = train.block("SimpleNetworkBuilder")
    assert (builder.text("rnnType"), builder.int("recurrentLayer")) == ("CLASSLSTM", 1)
    assert builder.text("layerSizes") == "10000:200:10000"
    assert (builder.int("vocabSize"), builder.int("nbrClass")) == (10000, 50)
    assert train.block("SGD").bool("useAdagrad")
    assert train.block("reader").text("readerType") == "LMSequenceReader"


@pytest.mark.slow
def test_networks_see_what_a_trigram_does_not_and_mend_its_mistakes(tmp_path, monkeypatch, capsys):
    """Three words in between: under a trigram both closings are as likely as each other."""
    monkeypatch.setattr(hypotheses, "EDIT_COST", 0.5)  # closings are hard to tell apart
    monkeypatch.setitem(recipe.NUM_LISTS, "tiny", 35)
    # The rarest word becomes <unk>: writeWordAndClass makes room for it.
    text = write_sentences(tmp_path / "far.txt", [["left", "rare", "x", "x", "inda"], *far_sentences(700)])
    arguments = [
        *("recipe", "language_model", "--text", str(text), "--out", str(tmp_path / "lm"), "--size", "tiny"),
        *("--epochs", "4", "--set", "HiddenSize=20", "--set", "NbrClass=3", "--model", "lstm"),
        # Plain and fast: AdaGrad's first steps hang on roundings, and so does what four short epochs come to.
        *("--set", "Train=[SGD=[useAdagrad=false;learningRatesPerSample=0.3;autoAdjust=none]]"),
    ]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert shown.count("epoch 4: perplexity ") == 1
    found = Perplexities.read(tmp_path / "lm/perplexities.json")
    best = math.exp((math.log(2) + 3 * math.log(3)) / 6)  # of sentences that are drawn so
    blind = math.exp((2 * math.log(2) + 3 * math.log(3)) / 6)
    assert found.of(NGRAM).test > 0.98 * blind
    assert found.of(f"lstm + {NGRAM}").dev <= found.of("lstm").dev
    assert 0.97 * best < found.of("lstm").test < 1.1 * best
    assert found.num_predicted["test"] == 6 * len((tmp_path / "lm/text/test.txt").read_text().splitlines())

    rates = json.loads((tmp_path / "lm/rescoring.json").read_text())
    lstm = next(rate for name, rate in rates.items() if name.startswith("lstm"))
    assert rates["oracle"] <= lstm < 0.5 * rates["trigram"]
    assert (tmp_path / "lm/pictures/perplexities.png").read_bytes().startswith(b"\x89PNG")
    assert shown.splitlines()[-1].startswith(f"WER trigram {rates['trigram']:.1f}%, lstm (")

    model = (tmp_path / "lm/lstm/model").read_bytes()
    assert main(arguments) == 0
    again = capsys.readouterr().out
    assert again.count("done before") == 7
    assert again.splitlines()[-1] == shown.splitlines()[-1]
    assert main([*arguments, "--from", "perplexity"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == shown.splitlines()[-1]
    assert model == (tmp_path / "lm/lstm/model").read_bytes()


@pytest.mark.slow
def test_the_rnn_learns_too(tmp_path, capsys):
    text = write_sentences(tmp_path / "far.txt", far_sentences(100))
    arguments = ["--size", "tiny", "--epochs", "2", "--set", "NbrClass=3", "--model", "rnn", "--to", "train-rnn"]
    assert main(["recipe", "language_model", "--text", str(text), "--out", str(tmp_path / "lm"), *arguments]) == 0
    rows = epochs_of(tmp_path / "lm/rnn/model")
    assert [row["epoch"] for row in rows] == [1, 2]
    assert rows[1]["dev"] < rows[0]["train"] < 8  # words
    assert (
        f"epoch 2: perplexity {rows[1]['train']:.2f} (training), {rows[1]['dev']:.2f} (dev); "
        in capsys.readouterr().out
    )


def test_a_generated_text_goes_to_the_stages_that_are_asked_for(tmp_path, monkeypatch, capsys):
    from recipes.language_model import generate

    monkeypatch.setitem(generate.SIZES, "tiny", (3000, 300, 300))
    arguments = ["recipe", "language_model", "--out", str(tmp_path), "--size", "tiny", "--to", "ngram"]
    assert main(arguments) == 0
    assert "3-gram, 499 words" in capsys.readouterr().out  # <unk> among them
    words = (tmp_path / "words/words.list").read_text().split()
    assert len(words) == 498
    assert not {"</s>", "<unk>"} & set(words)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "d", "--text", "t"], "--data is given beside --text; expected only one of them"),
        (["--epochs", "0"], "--epochs is 0; expected at least 1"),
        (["--text", "missing"], "missing"),
    ],
)
def test_faults_of_the_command_line(tmp_path, capsys, arguments, message):
    assert main(["recipe", "language_model", "--out", str(tmp_path / "exp"), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_text_is_split_by_blocks_and_loses_nothing_but_marks(tmp_path):
    source = tmp_path / "novel.txt"
    source.write_text("".join(f"<s> word{k}   more </s>\n\n" for k in range(1000)))
    split_text(source, tmp_path / "out")
    parts = {path.stem: path.read_text().splitlines() for path in (tmp_path / "out").iterdir()}
    assert {name: len(lines) for name, lines in parts.items()} == {"train": 900, "dev": 50, "test": 50}
    assert sorted(line for lines in parts.values() for line in lines) == sorted(f"word{k} more" for k in range(1000))
    assert parts["test"][:10] == [f"word{k} more" for k in range(190, 200)]
    source.write_text("one\n" * 59)
    with pytest.raises(FormatError, match=r"novel.txt: 59 sentences; expected at least 60"):
        split_text(source, tmp_path / "out")


def test_a_folder_gives_one_text_for_each_part(tmp_path):
    for name in ("ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"):
        (tmp_path / name).write_text(f"{name}\n")
    take_texts(tmp_path, tmp_path / "out")
    assert (tmp_path / "out/dev.txt").read_text() == "ptb.valid.txt\n"
    (tmp_path / "my.dev.txt").write_text("x\n")
    with pytest.raises(ConfigError, match=r"my.dev.txt, ptb.valid.txt; expected one text \*.txt with dev or valid in"):
        take_texts(tmp_path, tmp_path / "out")
    (tmp_path / "my.dev.txt").unlink()
    (tmp_path / "ptb.test.txt").write_text("</s>\n")
    with pytest.raises(FormatError, match=r"ptb.test.txt: no sentences"):
        take_texts(tmp_path, tmp_path / "out")


def test_words_are_taken_for_those_that_look_alike():
    similar = SimilarWords(["walk", "walks", "walked", "talk", "(", ")", "himself", "herself"])
    assert similar.of("walk") == [("walk", 0), ("walks", 1), ("talk", 1), ("walked", 2)]
    assert similar.of("(") == [("(", 0)]
    assert similar.of("walkt") == [("walk", 1), ("walks", 1), ("walked", 2)]  # not in the vocabulary
    assert similar.of("himself") == [("himself", 0), ("herself", 2)]
    assert similar.of("?") == [("<unk>", 0)]


def test_recognise_is_the_best_of_all_sentences(monkeypatch):
    model = LanguageModel.from_arpa(estimate([["a", "b"], ["a", "c"], ["b"]], 2, "kn"))
    rng = np.random.default_rng(0)
    scored = [[(word, float(score)) for word, score in zip("abc", rng.normal(size=3))] for _ in range(3)]
    found = recognise(scored, model)
    every = []
    for a in scored[0]:
        for b in scored[1]:
            for c in scored[2]:
                words = (a[0], b[0], c[0])
                lm = -float(model.sentence_costs([words])[0].sum())
                every.append((a[1] + b[1] + c[1] + lm, words, lm))
    every.sort(reverse=True)
    assert [one.words for one in found] == [words for _, words, _ in every]
    assert [one.acoustic + one.lm for one in found] == pytest.approx([total for total, _, _ in every])
    assert [one.lm for one in found] == pytest.approx([lm for _, _, lm in every])
    monkeypatch.setattr(hypotheses, "NUM_HYPOTHESES", 2)
    assert [one.words for one in recognise(scored, model)] == [words for _, words, _ in every[:2]]


def test_lists_follow_from_the_seed_and_name_the_true_words(tmp_path, monkeypatch):
    monkeypatch.setattr(hypotheses, "EDIT_COST", 0.5)
    sentences = far_sentences(30, seed=1)
    model = LanguageModel.from_arpa(estimate(sentences, 3, "kn"))
    text = write_sentences(tmp_path / "dev.txt", sentences)
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        write_lists(text, model, tmp_path / name, 20, seed, lambda done, total: None)
    nbest, true = tmp_path / "a/dev.nbest", tmp_path / "a/dev.mlf"
    assert nbest.read_bytes() == (tmp_path / "b/dev.nbest").read_bytes() != (tmp_path / "c/dev.nbest").read_bytes()
    lists = read_nbest(nbest)
    assert list(lists) == [f"dev{k:04}" for k in range(1, 21)]
    assert all(len(one.words) == 5 for hypotheses in lists.values() for one in hypotheses)
    first, oracle = first_score(nbest, true), oracle_score(nbest, true)
    assert first.num_words == oracle.num_words == 100
    assert 0 == oracle.num_errors < first.num_errors < 40


def test_sizes_have_settings_of_their_own():
    from recipes.language_model.generate import SIZES

    assert set(SIZES) == set(recipe.SETTINGS) == set(recipe.NUM_LISTS)
    assert recipe.SETTINGS["full"] == {"VocabSize": 10000, "NbrClass": 50, "HiddenSize": 200, "MaxEpochs": 40}
