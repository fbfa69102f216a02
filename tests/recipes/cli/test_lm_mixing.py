"""`argonaut lm mix` and `prune`, from files to files."""

import itertools
import re
from collections import Counter

import numpy as np
import pytest

from decoder.lm import LanguageModel, best_weights, estimate, interpolate, open_collection, perplexity, prune
from readers.language.arpa import read_arpa, write_arpa
from recipes.cli.main import main
from tests.decoder.lm.test_estimation import random_text
from tests.decoder.lm.test_pruning import distribution, listed


@pytest.fixture
def models(tmp_path):
    paths = []
    for seed in (1, 2):
        paths.append(tmp_path / f"{seed}.arpa")
        write_arpa(paths[-1], estimate(random_text(seed), 3), digits=17)
    return paths


def costs(path_or_model, text):
    model = path_or_model if hasattr(path_or_model, "orders") else read_arpa(path_or_model)
    return [c.tolist() for c in LanguageModel.from_arpa(model).sentence_costs(text)]


def test_the_weights_of_a_text_and_the_mixture_are_those_of_the_functions(models, tmp_path, capsys):
    text, out = random_text(3), tmp_path / "mixed.arpa.gz"
    heldout = tmp_path / "heldout.txt"
    heldout.write_text("".join(" ".join(sentence) + "\n" for sentence in text if sentence))
    flags = [word for path in models for word in ("--lm", str(path))]
    assert main(["lm", "mix", *flags, "--heldout", str(heldout), "-o", str(out)]) == 0
    read = [read_arpa(path) for path in models]
    filled = [sentence for sentence in text if sentence]
    weights = best_weights(read, filled)
    shown = capsys.readouterr().out.splitlines()
    alone = [np.exp(np.mean(np.concatenate(costs(path, filled)))) for path in models]
    expected = [f"{path}: weight {w:.3f}, perplexity {p:.2f}" for path, w, p in zip(models, weights, alone)]
    assert shown[:2] == expected
    assert shown[2].startswith(f"{heldout}: perplexity ")
    for mine, expected in zip(costs(out, text), costs(interpolate(read, weights), text)):
        assert mine == pytest.approx(expected, rel=1e-5)


def test_a_mixture_as_one_model_is_as_good_as_the_list_on_listed_ngrams(models, tmp_path, capsys):
    out, collection = tmp_path / "mixed.arpa", tmp_path / "models.list"
    flags = [word for path in models for word in ("--lm", str(path))]
    assert main(["lm", "mix", *flags, "--weights", "0.3,0.7", "-o", str(out), "--collection", str(collection)]) == 0
    assert collection.read_text() == f"{models[0]} 0.3\n{models[1]} 0.7\n"
    assert not re.search("perplexity|probability 0", capsys.readouterr().out)
    together = open_collection(collection)
    for seed in (1, 2):  # each n-gram of the sentences that a model was estimated from is listed
        exact, one_model = perplexity(together, random_text(seed)), costs(out, random_text(seed))
        assert np.exp(np.mean(np.concatenate(one_model))) == pytest.approx(exact.perplexity, rel=1e-6)
    others = [["e"] * 4, list("edede")]
    one_model = np.exp(np.mean(np.concatenate(costs(out, others))))
    assert one_model == pytest.approx(perplexity(together, others).perplexity, rel=0.2)
    assert one_model != pytest.approx(perplexity(together, others).perplexity, rel=1e-4)  # backs off by other weights


def test_words_that_a_model_lacks_are_left_out_of_the_perplexities(tmp_path, capsys):
    for name, text in {"one": [["a", "b"], ["b"]], "two": [["a", "c"], ["c", "a"]]}.items():
        write_arpa(tmp_path / name, estimate(text, 2), digits=17)
    heldout = tmp_path / "heldout"
    heldout.write_text("a\nc a\n")
    flags = ["--lm", str(tmp_path / "one"), "--lm", str(tmp_path / "two"), "--heldout", str(heldout)]
    assert main(["lm", "mix", *flags, "--collection", str(tmp_path / "list")]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[2] == f"{tmp_path / 'one'}: 1 word of probability 0, left out of the perplexities"
    assert len(shown) == 4


def test_a_heldout_text_without_sentences_is_refused(models, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "other").write_text("x y\n")
    mix = ["lm", "mix", "--lm", str(models[0]), "--lm", str(models[1]), "-o", "out"]
    choose = ["lm", "vocabulary", "--text", "other", "--size", "1", "-o", "out"]
    for command in (mix, choose):
        assert main([*command, "--heldout", "empty"]) == 2
        assert capsys.readouterr().err == "error: empty: no sentences; expected one per line\n"
        assert not (tmp_path / "out").exists()


def test_a_pruned_model_is_that_of_the_function(models, tmp_path, capsys):
    out = tmp_path / "small.arpa"
    assert main(["lm", "prune", "--lm", str(models[0]), "--threshold", "1e-3", "-o", str(out)]) == 0
    expected = prune(read_arpa(models[0]), 1e-3)
    assert [len(order) for order in read_arpa(out).orders] == [len(order) for order in expected.orders]
    assert len(expected.orders[2]) < len(read_arpa(models[0]).orders[2])
    assert capsys.readouterr().out == f"{models[0]}: {read_arpa(models[0])}\n{out}: {expected}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--lm", "1.arpa", "--weights", "1"], r"--lm is one model; expected at least two"),
        (["--lm", "1.arpa", "--lm", "2.arpa"], r"--weights must be given, or --heldout, but not both"),
        (["--lm", "1.arpa", "--lm", "2.arpa", "--weights", "0.5,0.5"], r"--output is missing; expected it"),
        (["--lm", "1.arpa", "--lm", "2.arpa", "--weights", "0.5,0.4"], r"expected 2 numbers with sum 1"),
        (["--lm", "1.arpa", "--lm", "2.arpa", "--weights", "1.5,-0.5"], r"--weights is 1.5; expected 0 to 1"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(models, monkeypatch, capsys, words, message):
    monkeypatch.chdir(models[0].parent)
    output = [] if "output" in message else ["-o", "out.arpa"]
    assert main(["lm", "mix", *words, *output]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert re.search(message, lines[0]), lines
    assert not (models[0].parent / "out.arpa").exists()


def test_counts_that_add_up_give_the_model_of_the_whole_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = [" ".join(sentence) + "\n" for sentence in random_text(5) if sentence]
    for name, lines in (("all", text), ("one", text[:9]), ("two", text[9:])):
        (tmp_path / name).write_text("".join(lines))
        assert main(["lm", "counts", "--text", name, "-o", f"{name}.counts"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split()[:3] == ["order", "n-grams", "occurrences"]
    assert len(shown[3].split()) == 10
    assert main(["lm", "estimate", "--text", "all", "-o", "whole.arpa"]) == 0
    assert main(["lm", "estimate", "--counts", "one.counts", "--counts", "two.counts", "-o", "sum.arpa"]) == 0
    assert (tmp_path / "sum.arpa").read_bytes() == (tmp_path / "whole.arpa").read_bytes()
    assert main(["lm", "vocabulary", "--counts", "all.counts", "--size", "2", "-o", "words"]) == 0
    assert (tmp_path / "words").read_text() == "a\nb\n"
    assert capsys.readouterr().out.splitlines()[-1].startswith("words: 2 of 5 words, ")
    assert main(["lm", "counts", "--text", "all", "--memory", "1e-9", "-o", "all.counts"]) == 0
    assert "no discounts are shown" in capsys.readouterr().err


def test_rare_ngrams_are_left_out_and_every_history_sums_to_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sentences = [sentence for sentence in random_text(5, 100) if sentence]
    (tmp_path / "text").write_text("".join(" ".join(sentence) + "\n" for sentence in sentences))
    assert main(["lm", "estimate", "--text", "text", "--min-counts", "1,3", "--order", "4", "-o", "lm.arpa"]) == 0
    model, whole = read_arpa(tmp_path / "lm.arpa"), estimate(sentences, 4)
    marked = [("<s>", *sentence, "</s>") for sentence in sentences]
    for k in (2, 3, 4):
        times = Counter(words[i : i + k] for words in marked for i in range(len(words) - k + 1))
        expected = {words for words, count in times.items() if count >= (1 if k == 2 else 3)}
        assert listed(model)[k - 1] == expected
    assert len(listed(whole)[3]) > len(listed(model)[3]) > 0
    for history in itertools.product("abe", repeat=3):
        assert distribution(model, history).sum() == pytest.approx(1, abs=1e-5)
    assert main(["lm", "estimate", "--text", "text", "--min-counts", "2", "--classes", "2", "-o", "other.arpa"]) == 2
