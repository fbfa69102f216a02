"""`argonaut lm` with networks: perplexity, n-best lists out of lattices, rescoring."""

import math
import re

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import build_simple_network, simple_network_options
from acoustic.network.model_file import load_model, save_model
from acoustic.scoring.word_scorer import WordScorer
from decoder.lm.language_model import LanguageModel
from readers.config.config import Config
from readers.htk.mlf import read_mlf
from readers.htk.slf import read_slf, write_slf
from readers.language.arpa import read_arpa
from readers.language.vocabulary import VocabularyWord, read_vocabulary, write_vocabulary
from readers.language.vocabulary_record import VocabularyRecord
from readers.results.lattice import Lattice
from readers.results.nbest import Hypothesis, read_nbest, write_nbest
from recipes.cli.main import main
from tests.decoder.lattices.small_lattices import paths

WORDS = ["</s>", "a", "b", "<unk>", "c", "d"]
NETWORK = "rnnType=CLASSLM\nlayerSizes=6:3:6\nrecurrentLayer=1\nvocabSize=6\nnbrClass=3\ninitValueScale=40"
TEXT = [["a", "b", "c"], ["d", "zebra"], ["a"]]


@pytest.fixture
def place(tmp_path):
    """A network, its vocabulary, a text and an n-gram in a directory; returns it."""
    options = simple_network_options(Config.from_text(f"B=[\n{NETWORK}\n]", "net.cntk").block("B"))
    save_model(build_simple_network(options, "float"), tmp_path / "model")
    write_vocabulary(tmp_path / "words", [VocabularyWord(word, 1, k // 2) for k, word in enumerate(WORDS)])
    (tmp_path / "text").write_text("".join(" ".join(sentence) + "\n" for sentence in TEXT))
    (tmp_path / "list").write_text("a\nb\nc\nd\n")
    arguments = ["--text", str(tmp_path / "text"), "--vocabulary", str(tmp_path / "list"), "--unk", "<unk>"]
    assert main(["lm", "estimate", *arguments, "--order", "2", "-o", str(tmp_path / "arpa")]) == 0
    return tmp_path


def network(place):
    return ["--model", str(place / "model"), "--words", str(place / "words")]


def logs_of(place, sentences):
    return WordScorer(place / "model", read_vocabulary(place / "words")).score(sentences)


def ngram_logs(place, sentences):
    return [-costs for costs in LanguageModel.from_arpa(read_arpa(place / "arpa")).sentence_costs(sentences)]


def run(capsys, *arguments):
    capsys.readouterr()
    code = main(["lm", *map(str, arguments)])
    return code, capsys.readouterr()


def test_perplexity_of_a_network(place, capsys):
    code, shown = run(capsys, "perplexity", "--text", place / "text", *network(place))
    assert code == 0
    expected = math.exp(-np.concatenate(logs_of(place, TEXT)).mean())
    assert shown.out.splitlines()[-1] == f"perplexity {expected:.2f} (3 sentences, 6 words, 1 unknown)"


def test_a_model_that_knows_its_words_needs_no_vocabulary(place, capsys):
    expected = run(capsys, "perplexity", "--text", place / "text", *network(place))[1].out
    model = load_model(place / "model")
    model.vocabularies["labels"] = VocabularyRecord.of_words(read_vocabulary(place / "words"))
    save_model(model, place / "model")
    code, shown = run(capsys, "perplexity", "--text", place / "text", "--model", place / "model")
    assert (code, shown.out) == (0, expected)
    code, shown = run(capsys, "perplexity", "--text", place / "text", *network(place))
    assert (code, shown.out) == (0, expected)
    (place / "words").write_text((place / "words").read_text().replace("\tb\t", "\tz\t"))
    code, shown = run(capsys, "perplexity", "--text", place / "text", *network(place))
    assert code == 2
    assert "vocabulary: word 2 is 'z'; expected 'b', with which" in shown.err
    assert main(["info", str(place / "model")]) == 0
    assert re.search(r"^  vocabulary  labels: 6 words in 3 classes$", capsys.readouterr().out, re.M)


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_perplexity_of_a_network_and_an_ngram_word_by_word(place, capsys, weight):
    arguments = ["--lm", place / "arpa", "--weight", weight]
    code, shown = run(capsys, "perplexity", "--text", place / "text", *network(place), *arguments)
    assert code == 0
    new, old = (np.exp(np.concatenate(logs)) for logs in (logs_of(place, TEXT), ngram_logs(place, TEXT)))
    expected = math.exp(-np.log(weight * new + (1 - weight) * old).mean())
    assert shown.out.startswith(f"perplexity {expected:.2f} (")


def test_nbest_and_rescore_from_lattices_to_words(place, capsys):
    for number, words in ((1, "ab"), (3, "cd")):
        acoustic = np.array([-10.0, -20.0, -5.0])
        lattice = Lattice.of_words(
            np.arange(3) / 10, [0, 0, 1], [1, 1, 2], [*words, "d"], acoustic, np.full(3, -2.0),
            utterance=f"u{number}", acoustic_scale=0.1, lm_scale=4.0, word_penalty=-1.0,
        )  # fmt: skip
        write_slf(place / f"lat{number}.lat", lattice)
    (place / "lat.index").write_text("1\tdir/u1\n3\tu3\n")
    code, shown = run(capsys, "nbest", "--lattices", place / "lat.index", "-n", 5, "-o", place / "nbest")
    assert code == 0
    assert shown.out.endswith("4 hypotheses; lattices: 2 done, 0 skipped, 0 failed; rescore with --lm-scale 4\n")
    lists = read_nbest(place / "nbest")
    assert lists["u1"] == [Hypothesis(("a", "d"), -3.5, -4.0), Hypothesis(("b", "d"), -4.5, -4.0)]

    where = ["-o", place / "out", "--mlf", place / "mlf", "--lm-scale", 4, "--weight", 0.75]
    code, shown = run(capsys, "rescore", "--nbest", place / "nbest", *network(place), *where)
    assert code == 0
    assert "2 lists, 4 sentences, " in shown.out
    found = read_nbest(place / "out")
    for name, hypotheses in lists.items():
        expected = {
            one.words: 0.75 * logs.sum() + 0.25 * one.lm
            for one, logs in zip(hypotheses, logs_of(place, [one.words for one in hypotheses]))
        }
        assert {one.words: one.lm for one in found[name]} == pytest.approx(expected)
        totals = [one.acoustic + 4 * one.lm for one in found[name]]
        assert totals == sorted(totals, reverse=True)
    best = {key: tuple(label.name for label in labels) for key, labels in read_mlf(place / "mlf").items()}
    assert best == {name: hypotheses[0].words for name, hypotheses in found.items()}


def test_rescore_with_an_ngram_mixes_word_by_word(place, capsys):
    lists = {"u": [Hypothesis(("a", "b"), -1.0, -99.0), Hypothesis(("zebra",), -2.0, -99.0)]}
    write_nbest(place / "nbest", lists)
    arguments = ["--lm", place / "arpa", "-o", place / "out"]
    code, _ = run(capsys, "rescore", "--nbest", place / "nbest", *network(place), *arguments)
    assert code == 0
    sentences = [one.words for one in lists["u"]]
    found = {one.words: one.lm for one in read_nbest(place / "out")["u"]}
    for words, new, old in zip(sentences, logs_of(place, sentences), ngram_logs(place, sentences)):
        assert found[words] == pytest.approx(np.log((np.exp(new) + np.exp(old)) / 2).sum())


def test_rescore_without_a_network(place, capsys):
    """With an n-gram alone, or with other weights of the lists' own scores."""
    lists = {"u": [Hypothesis(("a", "b"), -1.0, -9.0), Hypothesis(("zebra",), -2.0, -8.5)]}
    write_nbest(place / "nbest", lists)
    arguments = ["rescore", "--nbest", place / "nbest", "-o", place / "out"]
    assert run(capsys, *arguments, "--lm", place / "arpa")[0] == 0
    sentences = [one.words for one in lists["u"]]
    found = {one.words: one.lm for one in read_nbest(place / "out")["u"]}
    for words, logs in zip(sentences, ngram_logs(place, sentences)):
        assert found[words] == pytest.approx(logs.sum())
    assert run(capsys, *arguments, "--lm-scale", 3)[0] == 0
    assert read_nbest(place / "out")["u"] == lists["u"][::-1]


def test_silence_has_no_score_and_stays(place, capsys):
    (place / "plain").write_text("u1 -10 -2 2 a b\nu1 -11 -2 1 a\n")
    (place / "silent").write_text("u1 -10 -2 4 sil a sil b\nu1 -11 -2 2 a sil\n")
    for name, more in (("plain", []), ("silent", ["--silence", "sp,sil"])):
        arguments = ["--lm", place / "arpa", "-o", place / f"{name}.out", *more]
        assert run(capsys, "rescore", "--nbest", place / name, *network(place), *arguments)[0] == 0
    plain, silent = (read_nbest(place / f"{name}.out")["u1"] for name in ("plain", "silent"))
    assert [one.lm for one in plain] == [one.lm for one in silent]
    assert {one.words for one in silent} == {("sil", "a", "sil", "b"), ("a", "sil")}


def test_a_lattice_that_is_lost_is_named(place, capsys):
    (place / "lat.index").write_text("1\tu1\n")
    code, shown = run(capsys, "nbest", "--lattices", place / "lat.index", "-o", place / "nbest")
    assert code == 2
    assert "lat1.lat" in shown.err
    assert "0 done, 0 skipped, 1 failed" in shown.out
    assert not (place / "nbest").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["perplexity", "--text", "text"], "--lm is missing; expected an n-gram, a network \\(--model\\), or both"),
        (
            ["perplexity", "--text", "text", "--model", "model"],
            "a model that does not know its words; expected a language model",
        ),
        (
            ["rescore", "--nbest", "text", "--words", "words", "-o", "x"],
            "--words is given without --model; expected the network",
        ),
        (["perplexity", "--text", "text", "--model", "model", "--words", "arpa"], "arpa:2: .*; expected `number count"),
        (["perplexity", "--text", "text", "--model", "model", "--words", "words", "--weight", "2"], "expected 0 to 1"),
        (
            ["rescore", "--nbest", "text", "--model", "model", "--words", "words"],
            "--output is missing; expected an output file: it or --mlf",
        ),
        (
            ["rescore", "--nbest", "text", "--model", "model", "--words", "words", "-o", "x"],
            "text:1: 'a b c'; expected",
        ),
        (["nbest", "--lattices", "text", "-o", "x"], "text:1: 'a b c'; expected `number<TAB>utterance`"),
        (["nbest", "--lattices", "text", "-n", "0", "-o", "x"], "--number is 0; expected at least 1"),
    ],
)
def test_faults_are_one_line(place, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(place)
    code, shown = run(capsys, *arguments)
    assert code == 2
    assert len(shown.err.splitlines()) == 1
    assert re.search(message, shown.err), shown.err


def test_lattices_are_rescored_with_a_network_and_an_ngram(place, capsys):
    words = ["a", "b", "c", "a", "d"]
    lattice = Lattice.of_words(
        np.arange(4) * 0.5, [0, 0, 1, 1, 2], [1, 1, 2, 2, 3], words, -np.arange(1.0, 6.0), np.full(5, -1.0),
        lm_scale=2.0,
    )  # fmt: skip
    write_slf(place / "u1.lat", lattice)
    (place / "test.index").write_text("1\tu1\n")
    (place / "u1.lat").rename(place / "test1.lat")
    command = ["lattice", "rescore", "--lattices", place / "test.index", "--prefix", place / "new", *network(place)]
    assert main([*map(str, command), "--lm", str(place / "arpa"), "--weight", "0.25"]) == 0
    assert "test.index" not in capsys.readouterr().err
    new = read_slf(place / "new1.lat")
    assert (new.header["lmname"], new.lm_scale) == ("arpa+model", 2.0)
    sentences = [[first, second, "d"] for first in "ab" for second in "ca"]
    by_both = zip(logs_of(place, sentences), ngram_logs(place, sentences))
    expected = {tuple(s): 0.25 * a.sum() + 0.75 * b.sum() for s, (a, b) in zip(sentences, by_both)}
    found = {tuple(new.word[link] for link in path): sum(new.lm[link] for link in path) for path, _ in paths(new)}
    assert found == pytest.approx(expected, abs=1e-4)
    assert main(["lattice", "rescore", "--lattices", str(place / "test.index"), "--prefix", str(place / "other")]) == 2
    assert "--lm is missing; expected an n-gram, a network (--model), or both" in capsys.readouterr().err


def test_a_network_is_trained(place, capsys):
    options = ["--text", place / "text", "--heldout", place / "text", "--vocabulary", place / "list"]
    code, printed = run(capsys, "train", *options, "--cells", 4, "--epochs", 2, "-o", place / "lstm")
    assert code == 0
    (best, *_) = re.findall(r"best: epoch 2, perplexity ([\d.]+), 1 of 6 held-out words unknown$", printed.out, re.M)
    assert "4 LSTM cells, vocabulary of 6; 3 sentences, 6 words\n" in printed.out
    assert f"epoch 2: perplexity {best} of the held-out sentences" in printed.err
    code, printed = run(capsys, "perplexity", "--model", place / "lstm", "--text", place / "text")
    assert f"perplexity {best} " in printed.out
