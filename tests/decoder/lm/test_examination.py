"""What is in a model, against enumeration of its words."""

import itertools

import numpy as np
import pytest

from decoder.lm import ExaminationOptions, estimate, examine_model, prune
from readers.language.arpa import read_arpa, write_arpa
from recipes.cli.main import main
from tests.decoder.lm.test_estimation import random_text
from tests.decoder.lm.test_pruning import distribution, listed


def model(tmp_path, arpa):
    write_arpa(tmp_path / "lm.arpa", arpa, digits=17)
    return examine_model(ExaminationOptions(lm=tmp_path / "lm.arpa", text=(tmp_path / "text",)))


@pytest.mark.parametrize("is_spoilt", [False, True])
def test_sums_and_coverage_are_those_of_an_enumeration(tmp_path, is_spoilt):
    arpa = prune(estimate(random_text(3, 60), 3), 1e-3)
    if is_spoilt:
        arpa.orders[1].backoff[4] += 0.1
    sentences = [*random_text(4, 8), ["a", "z"], ["z"]]
    (tmp_path / "text").write_text("".join(" ".join(sentence) + "\n" for sentence in sentences))
    result = model(tmp_path, arpa)
    for length, sums in enumerate(result.sums):
        histories = [h for h in listed(arpa)[length - 1] if h[-1] != "</s>"] if length else [()]
        totals = {history: distribution(arpa, history).sum() for history in histories}
        assert (sums.smallest, sums.largest) == pytest.approx((min(totals.values()), max(totals.values())), rel=1e-9)
        assert sums.num_histories == len(histories)
        if is_spoilt and length == 2:
            assert sums.worst == max(totals, key=lambda history: abs(totals[history] - 1))
            assert sums.largest > 1 + 1e-3
    assert result.unknown_probability is None
    assert sum(result.num_gaps) > 0
    ngrams = set(itertools.chain(*listed(arpa)))
    predicted_by = [0, 0, 0]
    for sentence in filter(None, sentences):
        words = ["<s>", *sentence, "</s>"]
        for i in range(1, len(words)):
            if words[i] != "z":
                longest = max(k for k in (1, 2, 3) if i - k + 1 >= 0 and tuple(words[i - k + 1 : i + 1]) in ngrams)
                predicted_by[longest - 1] += 1
    coverage = result.coverage
    assert coverage.predicted_by == tuple(predicted_by)
    assert (coverage.unknown, coverage.num_words) == (("z", "z"), sum(map(len, sentences)))


def test_the_command_shows_an_open_model_whose_start_has_a_probability(tmp_path, capsys):
    arpa = estimate([["a", "x"], ["a"]], 2, vocabulary=["a"], unknown="<unk>")
    arpa.orders[0].logprob[arpa.vocabulary.index("<s>")] = 0.0  # as KenLM writes it
    write_arpa(tmp_path / "lm", arpa, digits=17)
    (tmp_path / "text").write_text("a y\na\n")
    assert main(["lm", "info", "--lm", str(tmp_path / "lm"), "--text", str(tmp_path / "text")]) == 0
    lines = capsys.readouterr().out.splitlines()
    unknown = 10.0 ** arpa.orders[0].logprob[arpa.vocabulary.index("<unk>")]
    assert lines[1:] == [
        f"open vocabulary: the unknown word has probability {unknown:.3g}",
        "1 history of 0 words: sums 1.000000 to 1.000000",
        "3 histories of 1 word: sums 1.000000 to 1.000000",
        "2 sentences, 3 words, 33.33 % unknown",
        "unknown: y",
        "predicted: 100.0 % by 2-grams, 0.0 % by 1-grams",
    ]
    assert np.isclose(10.0 ** read_arpa(tmp_path / "lm").orders[0].logprob.max(), 1)
