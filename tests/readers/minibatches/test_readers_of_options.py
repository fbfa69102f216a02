"""Every reader is made of options in Python, and then gives what it gives by a configuration."""

import kaldiio
import numpy as np
import pytest

from readers.config.config import Config
from readers.errors import ConfigError
from readers.language.vocabulary import VocabularyWord, write_vocabulary
from readers.minibatches.base import READERS, open_reader
from readers.minibatches.excerpts import ExcerptOptions
from readers.sources.examples import ExampleReader, ExampleReaderOptions, write_examples
from readers.sources.frames import (
    AlignmentOptions,
    HTKFeatureOptions,
    HTKMLFReader,
    Kaldi2FeatureOptions,
    Kaldi2LabelOptions,
    Kaldi2Options,
    Kaldi2Reader,
    KaldiFeatureOptions,
    KaldiReader,
    LabelOptions,
    ReaderOptions,
)
from readers.sources.records import (
    BinaryReader,
    BinaryReaderOptions,
    LabelMapOptions,
    SelectionOptions,
    UCIBlockOptions,
    UCIFastReader,
    UCILabelOptions,
    UCIReaderOptions,
)
from readers.sources.sentences import (
    LMLabelOptions,
    LMSequenceOptions,
    LMSequenceReader,
    LULabelOptions,
    LUSequenceOptions,
    LUSequenceReader,
)

WORDS = ["</s>", "the", "<unk>", "cat", "sat"]


@pytest.fixture
def corpus(tiny):
    made = tiny()
    folder = made.directory
    frames = {f"u{u}": one.T.copy() for u, one in enumerate(made.frames["features"])}
    kaldiio.save_ark(str(folder / "f.ark"), frames, scp=str(folder / "f.kaldi"))
    classes = {f"u{u}": np.array(one, np.int32) for u, one in enumerate(made.labels["labels"])}
    kaldiio.save_ark(str(folder / "l.ark"), classes)
    made.write("counts", "".join(f"{key} {len(one)}\n" for key, one in frames.items()))
    made.write("feats", f"scp:{folder}/f.kaldi\n")
    made.write("ali", f"ark:{folder}/l.ark\n")
    made.write("records", "".join(f"{i} {i / 4} {i % 3}\n" for i in range(20)))
    made.write("text", "</s> the cat sat </s>\n</s> cat sat </s>\n</s> the cat </s>\n")
    made.write("pairs", "".join(f"{word} {word[:1]}\n" for word in ("the", "cat", "</s>", "sat", "the", "</s>")))
    made.write("words", "".join(f"{word}\n" for word in WORDS))
    made.write("letters", "t\nc\ns\n<\n")
    write_vocabulary(folder / "vocabulary", [VocabularyWord(word, 9, n // 2) for n, word in enumerate(WORDS)])
    with UCIFastReader.of(*uci(folder)) as reader:
        write_examples(folder / "egs", reader.minibatches(0, 8), 20, compress=False)
    return made


def uci(folder):
    return UCIReaderOptions(cache=folder / "cache"), {
        "features": UCIBlockOptions(file=folder / "records", dim=2),
        "labels": (UCILabelOptions(file=folder / "records", start=2), LabelMapOptions(num_classes=3)),
    }


def cases(folder) -> dict:
    """For each reader: its class, options, streams, and the text of a configuration that says the same."""
    return {
        "HTKMLFReader": (
            HTKMLFReader,
            ReaderOptions(frame_mode=False, parallel=(2, 1), excerpts=ExcerptOptions(subsampling=2)),
            {
                "features": HTKFeatureOptions(scp_file=folder / "features.scp", dim=3, context_window=(1, 0)),
                "labels": LabelOptions(
                    mlf_file=folder / "labels.mlf", num_classes=4, state_list=folder / "labels.list"
                ),
            },
            f"frameMode=false;nbruttsineachrecurrentiter=2:1;frameSubsampling=2\n"
            f"features=[scpFile={folder}/features.scp;dim=3;contextWindow=1:0]\n"
            f"labels=[mlfFile={folder}/labels.mlf;labelDim=4;labelMappingFile={folder}/labels.list]",
        ),
        "KaldiReader": (
            KaldiReader,
            ReaderOptions(randomize="8"),
            {
                "features": KaldiFeatureOptions(ark_file=folder / "f.ark", dim=15),
                "labels": AlignmentOptions(archives=(str(folder / "l.ark"),), num_classes=4),
            },
            f"randomize=8\nfeatures=[arkFile={folder}/f.ark;dim=15]\nlabels=[aliFile={folder}/l.ark;labelDim=4]",
        ),
        "Kaldi2Reader": (
            Kaldi2Reader,
            Kaldi2Options(),
            {
                "features": Kaldi2FeatureOptions(scp_file=folder / "counts", rx=folder / "feats", dim=3),
                "labels": Kaldi2LabelOptions(mlf_file=folder / "ali", num_classes=4, delay=1),
            },
            f"features=[scpFile={folder}/counts;rx={folder}/feats;dim=3]\n"
            f"labels=[mlfFile={folder}/ali;labelDim=4;targets_delay=1]",
        ),
        "UCIFastReader": (
            UCIFastReader,
            *uci(folder),
            f"file={folder}/records\nfeatures=[dim=2]\nlabels=[start=2;labelDim=3]",
        ),
        "BinaryReader": (
            BinaryReader,
            BinaryReaderOptions(cache=folder / "cache"),
            {"labels": SelectionOptions(label_dim=3), "features": SelectionOptions()},
            f"file={folder}/cache\nlabels=[labelDim=3]\nfeatures=[dim=2]",
        ),
        "ExampleReader": (ExampleReader, ExampleReaderOptions(file=folder / "egs"), {}, f"file={folder}/egs"),
        "LMSequenceReader": (
            LMSequenceReader,
            LMSequenceOptions(file=folder / "text", words=folder / "vocabulary", parallel=2),
            {"labelIn": LMLabelOptions(begin="</s>", end="</s>"), "labels": LMLabelOptions(kind="nextWord")},
            f"file={folder}/text\nwordclass={folder}/vocabulary\nnbruttsineachrecurrentiter=2\n"
            "labelIn=[beginSequence=</s>;endSequence=</s>]\nlabels=[labelType=nextWord]",
        ),
        "LUSequenceReader": (
            LUSequenceReader,
            LUSequenceOptions(file=folder / "pairs", context=(-1, 0, 1)),
            {
                "labelIn": LULabelOptions(token=folder / "words", begin="</s>", end="</s>"),
                "labels": LULabelOptions(token=folder / "letters"),
            },
            f"file={folder}/pairs\nwordContext=-1:0:1\n"
            f"labelIn=[token={folder}/words;beginSequence=</s>;endSequence=</s>]\nlabels=[token={folder}/letters]",
        ),
    }


@pytest.mark.parametrize("kind", READERS)
def test_a_reader_of_options_is_that_of_a_configuration(corpus, kind):
    made_by, options, streams, text = cases(corpus.directory)[kind]
    block = Config.from_text(f"reader=[\nreaderType={kind}\n{text}\n]").block("reader")
    with made_by.of(options, streams, seed=3) as ours, open_reader(block, 3) as theirs:
        assert type(ours) is type(theirs)
        assert (ours.dims(), ours.num_frames) == (theirs.dims(), theirs.num_frames)
        assert (ours.warnings, ours.skipped) == (theirs.warnings, theirs.skipped)
        assert set(ours.named_files) >= {
            path for declared, path in options.changed() if declared.type.__name__ == "Path"
        }
        for one, other in zip(ours.minibatches(1, 6), theirs.minibatches(1, 6), strict=True):
            for name, matrix in other.matrices.items():
                np.testing.assert_array_equal(np.asarray(one.matrices[name]), np.asarray(matrix))


def test_a_fault_in_the_data_names_the_reader(corpus):
    streams = {"features": HTKFeatureOptions(scp_file=corpus.directory / "features.scp", dim=4)}
    with pytest.raises(ConfigError, match=r"^HTKMLFReader: reader has one stream, features; expected"):
        HTKMLFReader.of(ReaderOptions(), streams)
    with pytest.raises(ConfigError, match=r"^HTKMLFReader: reader.features.scpFile: .*missing.scp: No such file"):
        HTKMLFReader.of(ReaderOptions(), {"features": HTKFeatureOptions(scp_file="missing.scp", dim=4)})
