"""The summary of a cross-validation."""

import math
from pathlib import Path

import pytest

from acoustic.actions import CommonSettings, make_action
from acoustic.actions.cross_validate import best_lines
from acoustic.descriptions import open_network
from acoustic.descriptions.builders.noise_contrastive import NoiseContrastiveOptions
from acoustic.network.model_file import save_model
from readers.config.config import Config
from readers.language.vocabulary import VocabularyWord, write_vocabulary


def test_the_smallest_value_wins_and_of_equal_ones_the_first():
    results = [
        (Path("net.1"), {"CE": math.nan, "Err": 0.5}),
        (Path("net.2"), {"CE": 2.0, "Err": 0.25}),
        (Path("net.3"), {"CE": 1.5, "Err": 0.25}),
        (Path("net.4"), {"CE": 1.5}),
    ]
    assert best_lines(results) == [
        "Best models:",
        "------------",
        "Based on Err[0]: Best model = net.3 with min err 1.5 (CE)",
        "Based on Err[1]: Best model = net.2 with min err 0.25 (Err)",
    ]


def test_a_value_that_is_not_a_number_wins_only_alone():
    assert best_lines([(Path("a"), {"CE": math.nan})])[-1] == "Based on Err[0]: Best model = a with min err nan (CE)"
    found = best_lines([(Path("a"), {"CE": math.nan}), (Path("b"), {"CE": math.inf})])[-1]
    assert found == "Based on Err[0]: Best model = b with min err inf (CE)"


@pytest.mark.parametrize("mode", ["softmax", "none"])
def test_noise_contrastive_estimation_is_evaluated_as_by_action_test(tmp_path, mode):
    words = ["</s>", "the", "<unk>", "cat", "sat"]
    write_vocabulary(tmp_path / "words", [VocabularyWord(word, 9, 0) for word in words])
    (tmp_path / "text").write_text("</s> the cat sat </s>\n</s> cat sat </s>\n")
    options = NoiseContrastiveOptions(layer_sizes=(5, 4, 5), num_noise=2, evaluation="unnormalized")
    save_model(open_network(options), tmp_path / "net")
    text = f"""
modelPath={tmp_path}/net
crossValidationInterval=1:1:1
nceEvalMode={mode}
reader=[
readerType=LMSequenceReader
mode=nce
noise_number=2
file={tmp_path}/text
wordclass={tmp_path}/words
labelIn=[beginSequence=</s>;endSequence=</s>]
labels=[labelType=nextWord]
]"""
    figures = []
    for name in ("test", "cv"):
        log: list[str] = []
        make_action(name, Config.from_text(text, "c.cntk"), CommonSettings()).run(log.append, lambda *_, **__: None)
        figures.append(next(line for line in log if line.startswith("Final Results")))
    assert figures[0] == figures[1]
    assert ("perplexity" in figures[0]) == (mode == "softmax")
