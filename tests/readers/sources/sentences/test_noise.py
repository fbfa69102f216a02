"""LMSequenceReader with mode=nce: the distribution of the noise words, their layout, and that they can be repeated."""

import numpy as np
import pytest

from readers.config.config import Config
from readers.errors import ArgonautError
from readers.language.vocabulary import VocabularyWord, write_vocabulary
from readers.sources.sentences.lm_sequence_reader import LMSequenceReader
from readers.sources.sentences.noise import Noise
from readers.sources.sentences.pair_reader import PairReader

WORDS = ["</s>", "a", "b", "<unk>"]
COUNTS = [5, 3, 2, 0]  # the last counts as 1
TEXT = ["</s> a b </s>", "</s> b </s>", "</s> a a a b </s>", "</s> b b </s>"] * 3


@pytest.fixture
def make(tmp_path):
    def reader(seed=1, counts=COUNTS, more="noise_number=3") -> LMSequenceReader:
        words = [VocabularyWord(word, count, 0) for word, count in zip(WORDS, counts)]
        write_vocabulary(tmp_path / "words", words)
        (tmp_path / "text").write_text("\n".join(TEXT) + "\n")
        block = (
            f"reader=[\nfile={tmp_path}/text\nwordclass={tmp_path}/words\nmode=nce\n{more}\n"
            f"nbruttsineachrecurrentiter=2\nlabelIn=[labelDim=4;beginSequence=</s>;endSequence=</s>]\n"
            "labels=[labelDim=4]\n]"
        )
        return LMSequenceReader(Config.from_text(block, "lm.cntk").block("reader"), seed)

    return reader


def labels_of(reader, epoch=0):
    return [minibatch.matrices["labels"] for minibatch in reader.minibatches(epoch, 3)]


def test_rows_are_words_and_log_probabilities(make):
    reader = make()
    assert reader.warnings == []
    assert reader.dims()["labels"] == 8
    q = np.array([5, 3, 2, 1]) / 11
    for minibatch in reader.minibatches(0, 3):
        labels, gaps = minibatch.matrices["labels"], minibatch.layout.gap_columns
        assert (labels.dtype, labels.flags.f_contiguous) == (np.float32, True)
        assert "labels" not in minibatch.classes
        if gaps is not None:
            assert not labels[:, gaps].any()
        real = labels if gaps is None else labels[:, ~gaps]
        logs = np.log(q)[real[::2].astype(int)]
        np.testing.assert_allclose(real[1::2], [logs[0], *-logs[1:]], rtol=1e-6)


def test_the_words_are_those_of_the_text_in_order(make):
    texts = [line.split()[1:] for line in TEXT]
    found = [matrices["labels"][0].astype(int).tolist() for _, matrices in make().utterances()]
    assert [[WORDS[number] for number in sentence] for sentence in found] == texts


def test_noise_has_the_unigram_distribution():
    words = [VocabularyWord(word, count, 0) for word, count in zip(WORDS, COUNTS)]
    drawn = Noise(words, 50, 7, "words").labels(np.zeros(2000, int))[2::2].astype(int)
    found = np.bincount(drawn.ravel(), minlength=4) / drawn.size
    np.testing.assert_allclose(found, np.array([5, 3, 2, 1]) / 11, atol=0.006)  # four standard deviations


def test_noise_depends_on_seed_epoch_and_minibatch_only(make):
    first, again = labels_of(make()), make()
    for one, other in zip(first, labels_of(again), strict=True):
        np.testing.assert_array_equal(one, other)
    later = labels_of(again, 2)  # as after a resumption, without the epoch between
    fresh = make()
    labels_of(fresh, 1)
    for one, other in zip(later, labels_of(fresh, 2), strict=True):
        np.testing.assert_array_equal(one, other)

    def noise(matrices):
        return np.concatenate([matrix[2::2].ravel() for matrix in matrices])

    assert (noise(first) != noise(later)).any()
    assert (noise(first) != noise(labels_of(make(seed=2)))).any()
    assert (first[0][2::2, :2] != first[1][2::2, :2]).any()


@pytest.mark.parametrize(
    ("more", "counts", "message"),
    [
        ("", COUNTS, "reader.noise_number: not set|noise_number"),
        ("noise_number=0", COUNTS, r"lm\.cntk:5: reader\.noise_number is 0; expected at least 1"),
        ("noise_number=5", COUNTS, r"lm\.cntk:5: reader\.noise_number is 5; expected 1 to 4, the number of words"),
        ("noise_number=1", [0, 0, 0, 0], "words: no counts; expected lines `number count word class`"),
        ("noise_number=1\nwordclass=", COUNTS, "has no wordclass; expected .*, which has the counts of the words"),
    ],
)
def test_faults(make, more, counts, message):
    with pytest.raises(ArgonautError, match=message):
        make(counts=counts, more=more)


def test_pairs_of_sentences_have_no_noise(make):
    with pytest.raises(ArgonautError, match="encoderReader: mode=nce; expected mode=class or softmax"):
        PairReader(make(), make())
