"""`argonaut lm interpolate` and `prune`, from files to files."""

import re

import pytest

from decoder.lm import LanguageModel, best_weights, estimate, interpolate, prune
from readers.language.arpa import read_arpa, write_arpa
from recipes.cli.main import main
from tests.decoder.lm.test_estimation import random_text


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
    assert main(["lm", "interpolate", *flags, "--heldout", str(heldout), "-o", str(out)]) == 0
    read = [read_arpa(path) for path in models]
    weights = best_weights(read, [sentence for sentence in text if sentence])
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == [f"{path}: weight {weight:.3f}" for path, weight in zip(models, weights)]
    for mine, expected in zip(costs(out, text), costs(interpolate(read, weights), text)):
        assert mine == pytest.approx(expected, rel=1e-5)


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
        (["--lm", "1.arpa", "--lm", "2.arpa", "--weights", "0.5,0.4"], r"expected 2 numbers with sum 1"),
        (["--lm", "1.arpa", "--lm", "2.arpa", "--weights", "1.5,-0.5"], r"--weights is 1.5; expected 0 to 1"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(models, monkeypatch, capsys, words, message):
    monkeypatch.chdir(models[0].parent)
    assert main(["lm", "interpolate", *words, "-o", "out.arpa"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert re.search(message, lines[0]), lines
    assert not (models[0].parent / "out.arpa").exists()
