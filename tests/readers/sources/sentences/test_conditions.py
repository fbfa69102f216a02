"""Vectors of sentences beside a text: the second input of conditional language models."""

import numpy as np
import pytest

from readers.config.config import Config
from readers.errors import ArgonautError
from readers.language.vocabulary import VocabularyWord, write_vocabulary
from readers.sources.sentences.lm_sequence_reader import LMSequenceReader

WORDS = ["</s>", "a", "b", "<unk>"]
TEXT = ["</s> a b </s>", "", "</s> </s>", "</s> b </s>", "</s> a a a b </s>"]
MEANINGS = ["1 2", "", "nonsense", "-3 4.5", "5e-1 0"]  # of lines that are not sentences, nothing is read


@pytest.fixture
def make(tmp_path):
    write_vocabulary(tmp_path / "words", [VocabularyWord(word, 1, k // 2) for k, word in enumerate(WORDS)])
    (tmp_path / "text").write_text("\n".join(TEXT) + "\n")

    def reader(lines=MEANINGS, dim="2", more="") -> LMSequenceReader:
        (tmp_path / "meanings").write_text("\n".join(lines) + "\n")
        block = (
            f"reader=[\nfile={tmp_path}/text\nwordclass={tmp_path}/words\nnbruttsineachrecurrentiter=2\n"
            f"labelIn=[labelDim=4;beginSequence=</s>;endSequence=</s>]\nlabels=[labelDim=4]\n"
            f"binaryFeature=[file={tmp_path}/meanings;dim={dim};{more}]\nfeatures=[dim=0]\n]"
        )
        return LMSequenceReader(Config.from_text(block, "lm.cntk").block("reader"), 1)

    return reader


def test_every_word_has_the_vector_of_its_sentence(make):
    reader = make()
    assert reader.warnings == []
    assert reader.dims() == {"labelIn": 4, "features": 4, "binaryFeature": 2, "labels": 4}
    vectors = [matrices["binaryFeature"] for _, matrices in reader.utterances()]
    expected = [[[1, 1, 1], [2, 2, 2]], [[-3, -3], [4.5, 4.5]], [[0.5] * 5, [0] * 5]]
    for found, wanted in zip(vectors, expected, strict=True):
        np.testing.assert_array_equal(found, np.array(wanted, np.float32))
        assert (found.dtype, found.flags.f_contiguous) == (np.float32, True)


def test_minibatches_have_zeros_in_gaps_and_no_class_numbers(make):
    reader = make(more="")
    seen = []
    for minibatch in reader.minibatches(0, 3):
        matrix, gaps = minibatch.matrices["binaryFeature"], minibatch.layout.gap_columns
        assert matrix.shape == (2, minibatch.layout.num_columns)
        assert "binaryFeature" not in minibatch.classes
        if gaps is not None:
            assert not matrix[:, gaps].any()
        real = slice(None) if gaps is None else ~gaps
        seen += matrix[0, real].tolist()
    assert sorted(seen) == sorted([1.0] * 3 + [-3.0] * 2 + [0.5] * 5)


@pytest.mark.parametrize(
    ("lines", "dim", "message"),
    [
        (MEANINGS[:3], "2", r"meanings: 3 lines; expected a line for each line of the text, at least 5"),
        (["1 2 3", *MEANINGS[1:]], "2", r"meanings:1: 3 values; expected 2 finite numbers"),
        (["1 x", *MEANINGS[1:]], "2", r"meanings:1: '1 x'; expected 2 finite numbers"),
        (["1 nan", *MEANINGS[1:]], "2", r"meanings:1: '1 nan'; expected 2 finite numbers"),
        (["1 1e99", *MEANINGS[1:]], "2", r"meanings:1: '1 1e99'; expected 2 finite numbers"),
        (MEANINGS, "0", r"lm\.cntk:7: reader\.binaryFeature\.dim is 0; expected at least 1"),
    ],
)
def test_faults(make, lines, dim, message):
    with pytest.raises(ArgonautError, match=message):
        make(lines, dim)


def test_an_absent_file_is_named_with_its_setting(make, tmp_path):
    with pytest.raises(ArgonautError, match=r"lm\.cntk:7: reader\.binaryFeature\.file"):
        make(more=f"file={tmp_path}/absent")
