"""The training of a network as a language model: what it reads, what it writes, and how it goes on."""

import math
import re

import numpy as np
import pytest

from acoustic.network.model_file import load_model
from acoustic.scoring.word_scorer import SENTENCE_MARK, WordScorer
from decoder.lm.networks import training
from decoder.lm.networks.training import UNKNOWN, Sentences, _read, _vocabulary, train_language_model
from decoder.lm.options import LMTrainOptions, TextOptions, VocabularyDictionary
from readers.config.config import Config
from readers.errors import FormatError
from readers.language.vocabulary import VocabularyWord, write_vocabulary
from readers.sources.sentences.lm_sequence_reader import LMSequenceReader

RNG = np.random.default_rng(5)
FOLLOWING = {"a": "b", "b": "c", "c": "d", "d": "a"}


def made_up(count: int) -> list[str]:
    """Sentences in which each word but the first follows from the one before."""
    lines = []
    for _ in range(count):
        words = ["abcd"[RNG.integers(4)]]
        while len(words) < 3 + RNG.integers(4):
            words.append(FOLLOWING[words[-1]])
        lines.append(" ".join(words))
    return lines


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts")
    (path / "train.txt").write_text("\n".join(made_up(400)) + "\n")
    (path / "dev.txt").write_text("\n".join(made_up(50)) + "\n")
    return path


def options_of(directory, output, **changes) -> LMTrainOptions:
    texts = TextOptions(text=(directory / "train.txt",))
    given = {"texts": texts, "heldout": directory / "dev.txt", "cells": 32, "epochs": 8, "output": output} | changes
    return LMTrainOptions(**given)


def held_out_perplexity(model, directory) -> float:
    sentences = [line.split() for line in (directory / "dev.txt").read_text().splitlines()]
    logs = np.concatenate(WordScorer(model).score(sentences))
    return math.exp(-logs.mean())


@pytest.fixture(scope="module")
def whole(directory, tmp_path_factory):
    """A training that was not interrupted, and its output."""
    output = tmp_path_factory.mktemp("whole") / "lm"
    return train_language_model(options_of(directory, output)), output


def test_it_learns_and_writes_the_network_of_the_best_epoch(directory, whole):
    trained, output = whole
    assert min(trained.perplexities) == trained.perplexities[trained.best_epoch - 1]
    # Four words begin a sentence, one follows, and the end comes at random: 1.6 at best, 4.9 without history.
    assert 1.6 < trained.perplexities[trained.best_epoch - 1] < 3.2
    assert held_out_perplexity(output, directory) == pytest.approx(min(trained.perplexities), rel=1e-3)
    assert (trained.num_sentences, trained.vocabulary, trained.cells) == (400, 6, 32)
    assert [path.name for path in output.parent.iterdir()] == ["lm"]


def test_the_epochs_of_a_large_text_share_it(directory, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "EPOCH_WORDS", 500)
    lines = []
    train_language_model(options_of(directory, tmp_path / "lm", epochs=3), log=lines.append)
    seen = [int(re.search(r"totalSamplesSeen = (\d+)", line)[1]) for line in lines if "totalSamplesSeen" in line]
    assert [abs(words - 500 * (1 + epoch)) < 64 for epoch, words in enumerate(seen)] == [True] * 3, seen


def test_the_best_epoch_may_not_be_the_last(directory, tmp_path):
    """Words that are learnt by heart make other sentences less likely."""
    lines = [" ".join(RNG.choice(list("abcdefgh"), 6)) for _ in range(40)]
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n")
    options = options_of(
        directory, tmp_path / "lm", texts=TextOptions(text=(tmp_path / "train.txt",)), epochs=30, cells=64, dropout=0.0
    )
    trained = train_language_model(options)
    assert trained.best_epoch < 30
    assert held_out_perplexity(tmp_path / "lm", directory) == pytest.approx(min(trained.perplexities), rel=1e-3)


def test_an_interrupted_training_goes_on_with_the_same_bits(directory, whole, tmp_path):
    expected = load_model(whole[1])

    def stop(done: int, total: int, **figures: object) -> None:
        if str(figures.get("epoch", "")).startswith("4"):
            raise KeyboardInterrupt

    options = options_of(directory, tmp_path / "stopped")
    with pytest.raises(KeyboardInterrupt, match="finished epochs are kept; the same command continues after them"):
        train_language_model(options, progress=stop)
    assert not (tmp_path / "stopped").exists()
    assert list((tmp_path / "stopped.unfinished").iterdir())
    lines: list[str] = []
    trained = train_language_model(options, log=lines.append)
    assert any("Starting from" in line for line in lines)
    assert trained.perplexities == whole[0].perplexities
    again = load_model(tmp_path / "stopped")
    for node in expected.parameters():
        assert np.array_equal(node.value, again[node.name].value), node.name
    assert not (tmp_path / "stopped.unfinished").exists()


def test_its_minibatches_are_those_of_the_reader_of_a_configuration(directory, tmp_path):
    words = [VocabularyWord(word, 9 - k, k // 2) for k, word in enumerate([SENTENCE_MARK, "a", "b", UNKNOWN, "d"])]
    write_vocabulary(tmp_path / "words", words)
    block = (
        f"reader=[\nreaderType=LMSequenceReader\nfile={directory / 'dev.txt'}\nwordclass={tmp_path / 'words'}\n"
        'nbruttsineachrecurrentiter=0\nrandomize="none"\ncacheBlockSize=1000000\n'
        'labelIn=[\nbeginSequence="</s>"\nendSequence="</s>"\n]\nlabels=[\nlabelType=nextWord\n]\n]'
    )
    expected = LMSequenceReader(Config.from_text(block, "x.cntk").block("reader"))
    ours = Sentences([line.split() for line in (directory / "dev.txt").read_text().splitlines()], words)
    pairs = list(zip(expected.minibatches(0, 64), ours.minibatches(0, 64), strict=True))
    assert len(pairs) > 2
    for theirs, mine in pairs:
        assert np.array_equal(theirs.matrices["features"].numbers, mine.matrices["features"].numbers)
        assert np.array_equal(theirs.matrices["labels"], mine.matrices["labels"])
    assert ours.vocabularies()["labels"] == expected.vocabularies()["labels"]


def test_the_vocabulary_is_that_of_a_list_and_a_dictionary(directory, tmp_path):
    (tmp_path / "words").write_text("a\nb\nnever\n")
    (tmp_path / "one.dict").write_text("c k\n")
    dictionary = VocabularyDictionary(dict=tmp_path / "one.dict")
    options = options_of(directory, tmp_path / "lm", vocabulary=tmp_path / "words", dictionary=dictionary, epochs=1)
    train_language_model(options)
    scorer = WordScorer(tmp_path / "lm")
    assert {word.word for word in scorer.words} == {"a", "b", "c", "never", SENTENCE_MARK, UNKNOWN}
    counts = {word.word: word.count for word in scorer.words}
    lines = (directory / "train.txt").read_text()
    assert (counts["never"], counts[UNKNOWN], counts[SENTENCE_MARK]) == (0, lines.count("d"), 400)
    train_language_model(options_of(directory, tmp_path / "lm", size=2, epochs=1))
    assert len(WordScorer(tmp_path / "lm").words) == 4


def test_the_training_ends_with_the_domain(directory, tmp_path):
    """In the domain b follows d, in the other text a."""
    (tmp_path / "domain.txt").write_text("\n".join(made_up(150)).replace("d a", "d b") + "\n")
    (tmp_path / "dev.txt").write_text("\n".join(made_up(50)).replace("d a", "d b") + "\n")
    options = options_of(
        directory, tmp_path / "lm", domain=(tmp_path / "domain.txt",), heldout=tmp_path / "dev.txt", dropout=0.0
    )
    trained = train_language_model(options)
    assert len(trained.perplexities) == 8 + 4
    assert trained.best_epoch > 8
    assert held_out_perplexity(tmp_path / "lm", tmp_path) == pytest.approx(min(trained.perplexities), rel=1e-3)


def test_the_network_before_the_domain_is_written_if_it_is_better(directory, tmp_path):
    (tmp_path / "domain.txt").write_text("d c b a d c b a\n" * 300)
    trained = train_language_model(options_of(directory, tmp_path / "lm", domain=(tmp_path / "domain.txt",)))
    assert (trained.best_epoch, len(trained.perplexities)) == (8, 12)
    assert held_out_perplexity(tmp_path / "lm", directory) == pytest.approx(min(trained.perplexities), rel=1e-3)


def test_one_sentence_in_a_hundred_is_held_out(directory, tmp_path):
    trained = train_language_model(options_of(directory, tmp_path / "lm", heldout=None, epochs=1))
    assert trained.num_sentences == 396
    domain = (directory / "train.txt",)
    trained = train_language_model(options_of(directory, tmp_path / "lm", heldout=None, domain=domain, epochs=1))
    assert trained.num_sentences == 396
    sentences = [f"a{k} b{k}" for k in range(200)]
    (tmp_path / "one.txt").write_text("\n".join(sentences) + "\n")
    texts = TextOptions(text=(directory / "train.txt", tmp_path / "one.txt"))
    options = options_of(directory, tmp_path / "lm", texts=texts, heldout=None, domain=(tmp_path / "one.txt",))
    training, domain, held_out = _read(options, lambda line: None)
    assert [" ".join(words) for words in held_out] == sentences[99::100]
    assert len(domain) == 198
    assert len(training) == 400 + 198
    assert not any(words in training or words in domain for words in held_out)


def test_words_as_frequent_as_each_other_are_cut_by_name():
    words = [word.word for word in _vocabulary([["d", "b", "c", "a", "b"]], ["d", "c", "b", "a"], 2)]
    assert words == ["<unk>", "b", "</s>", "a"]


def test_other_files_beside_the_checkpoints_stay(directory, tmp_path):
    unfinished = tmp_path / "lm.unfinished"
    unfinished.mkdir()
    (unfinished / "0123456789abcdef.4.ckp").write_text("of a training with other options")
    lines: list[str] = []
    trained = train_language_model(options_of(directory, tmp_path / "lm", epochs=1), note=lines.append)
    assert [path.name for path in unfinished.iterdir()] == ["0123456789abcdef.4.ckp"]
    assert lines == [f"epoch 1: perplexity {trained.perplexities[0]:.2f} of the held-out sentences"]
    num_words = len((directory / "dev.txt").read_text().split())
    assert (trained.num_unknown, trained.num_held_out) == (0, num_words)


def test_what_cannot_be_trained(directory, tmp_path):
    with pytest.raises(FormatError, match="fewer than 100 sentences; expected more, or the option heldout"):
        texts = TextOptions(text=(directory / "dev.txt",))
        train_language_model(options_of(directory, tmp_path / "lm", texts=texts, heldout=None))
    with pytest.raises(FileExistsError, match="would be overwritten"):
        train_language_model(options_of(directory, directory / "dev.txt"))
