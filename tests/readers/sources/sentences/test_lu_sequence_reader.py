"""LUSequenceReader and the writers of sequences on small texts, every column against the text itself."""

import numpy as np
import pytest

from readers.config.config import Config
from readers.errors import ArgonautError, FormatError
from readers.language.vocabulary_record import VocabularyRecord
from readers.minibatches.base import Utterance
from readers.sources.sentences.lu_sequence_reader import LUSequenceReader, read_classed_tokens
from readers.writers.sequence_writer import LMSequenceWriter, LUSequenceWriter

WORDS = ["BOS", "EOS", "<unk>", "flight", "from", "boston", "to"]
LABELS = ["O", "B-from", "B-to", "I-to"]
SENTENCES = [
    [("BOS", "O"), ("flight", "O"), ("from", "O"), ("boston", "B-from"), ("EOS", "O")],
    [("BOS", "O"), ("to", "O"), ("tulsa", "B-to"), ("boston", "I-to"), ("EOS", "O")],
    [("BOS", "O"), ("flight", "O"), ("EOS", "O")],
    [
        ("BOS", "O"),
        ("boston", "B-from"),
        ("to", "O"),
        ("boston", "B-to"),
        ("to", "O"),
        ("boston", "B-to"),
        ("EOS", "O"),
    ],
]
FRAMES = sum(map(len, SENTENCES))
BLOCKS = "labelIn=[token={0}/in;beginSequence=BOS;endSequence=EOS]\nlabels=[token={0}/out]"


def known(word: str) -> str:
    return word if word in WORDS else "<unk>"


def text_of(sentences, middle="") -> str:
    return "".join(f"{word} {middle}{label}\n" for words in sentences for word, label in words)


@pytest.fixture
def make(tmp_path):
    """make(options, blocks, text): a reader; {0} in options and blocks is the directory."""
    (tmp_path / "in").write_text("\n".join(WORDS) + "\n\nignored behind a blank line\n")
    (tmp_path / "out").write_text("\n".join(LABELS) + "\n")

    def reader(options: str = "", blocks: str = BLOCKS, text: str = text_of(SENTENCES)) -> LUSequenceReader:
        (tmp_path / "text").write_text(text)
        block = f"reader=[\nfile={tmp_path}/text\n{options}\n{blocks}\n]".replace("{0}", str(tmp_path))
        return LUSequenceReader(Config.from_text(block, "lu.cntk").block("reader"), 1)

    return reader


def walk(minibatches, context=(0,)) -> list[list[tuple[str, str]]]:
    """The sentences, words as they are known, in order of their beginnings; checks every column but their context."""
    sentences: list[list[tuple[str, str]]] = []
    slots: dict[int, list[tuple[str, str]] | None] = {}
    columns: dict[int, list[np.ndarray]] = {}
    for minibatch in minibatches:
        layout = minibatch.layout
        inputs, labels = (np.asarray(minibatch.matrices[name]) for name in ("features", "labels"))
        assert inputs.shape == (len(WORDS) * len(context), layout.num_columns)
        assert (inputs.dtype, inputs.flags.f_contiguous) == (np.float32, True)
        for step in range(layout.num_steps):
            for slot in range(layout.num_sequences):
                column = step * layout.num_sequences + slot
                if layout.gaps[step, slot]:
                    assert not inputs[:, column].any()
                    assert not labels[:, column].any()
                    assert slots.get(slot) is None
                    continue
                words = inputs[:, column].reshape(len(context), -1)
                assert words.sum(axis=1).tolist() == [1] * len(context)
                (label,) = np.flatnonzero(labels[:, column])
                assert minibatch.classes["labels"][column] == label
                if layout.starts[step, slot]:
                    slots[slot], columns[slot] = [], []
                    sentences.append(slots[slot])
                slots[slot].append((WORDS[words[context.index(0)].argmax()], LABELS[label]))
                columns[slot].append(words.argmax(axis=1))
                if layout.ends[step, slot]:
                    own = [WORDS.index(word) for word, _ in slots[slot]]
                    for t, found in enumerate(columns[slot]):
                        assert found.tolist() == [own[min(max(t + k, 0), len(own) - 1)] for k in context]
                    slots[slot] = None
    return sentences


KNOWN = [[(known(word), label) for word, label in words] for words in SENTENCES]


@pytest.mark.parametrize("context", [(0,), (0, 1, 2), (0, -1)])
@pytest.mark.parametrize("parallel", [1, 3])
@pytest.mark.parametrize("size", [2, 100])
@pytest.mark.parametrize("same", ["", "equalLength=false"])
def test_every_word_once_in_order_with_its_context(make, context, parallel, size, same):
    reader = make(f"wordContext={':'.join(map(str, context))}\nnbruttsineachrecurrentiter={parallel}\n{same}")
    assert (reader.num_frames, reader.num_utterances) == (FRAMES, 4)
    assert reader.dims() == {"labelIn": 7 * len(context), "features": 7 * len(context), "labels": 4}
    for epoch in (0, 1):
        minibatches = list(reader.minibatches(epoch, size))
        assert sorted(walk(minibatches, context)) == sorted(KNOWN)
        if not same:
            assert all(m.layout.gap_columns is None for m in minibatches)
        elif parallel == 3 and size == 100:
            assert minibatches[0].layout.num_sequences == 3


def test_order_of_the_text(make):
    assert walk(make("randomize=None").minibatches(0, 100)) == KNOWN
    assert [one.key for one in make().utterances()] == ["text:1", "text:6", "text:11", "text:14"]
    for utterance, words in zip(make().utterances(), KNOWN):
        assert [LABELS[k] for k in utterance.matrices["labels"].argmax(axis=0)] == [label for _, label in words]


def test_blank_lines_and_further_columns(make):
    text = text_of(SENTENCES[:1], "NN ").replace("EOS NN O\n", "\n\n") + text_of(SENTENCES[2:3])
    expected = [KNOWN[0][:-1], KNOWN[2]]
    assert walk(make("randomize=None", text=text).minibatches()) == expected


def test_the_label_ends_sentences_where_no_word_does(make):
    blocks = "labelIn=[token={0}/in]\nlabels=[token={0}/out;endSequence=I-to]"
    text = "flight O\nboston I-to\nto O\n"
    sentences = walk(make("randomize=None", blocks, text).minibatches(0, 100))
    assert sentences == [[("flight", "O"), ("boston", "I-to")], [("to", "O")]]


def test_the_end_label_cuts_sentences_as_in_cntk(make):
    """CNTK's LUSequenceParser tests the label of every line, also where an end word is set; recorded logs of CNTK's
    test of this reader count 51 sentences in 81 words.
    """
    blocks = BLOCKS.replace("/out]", "/out;beginSequence=O;endSequence=O]")
    reader = make("randomize=None", blocks, text_of(SENTENCES[:1]) + "\n" + text_of(SENTENCES[2:3]))
    expected = [[("BOS", "O")], [("flight", "O")], [("from", "O")], [("boston", "B-from"), ("EOS", "O")]]
    expected += [[("BOS", "O")], [("flight", "O")], [("EOS", "O")]]
    assert [
        list(zip([WORDS[k % 7] for k in one.classes["labelIn"]], [LABELS[k] for k in one.classes["labels"]]))
        for one in reader.minibatches(0, 100)
    ] == expected
    (warning,) = reader.warnings
    assert "endSequence is O: a sentence ends after each word with this label, first at line 1, 5 times" in warning


def test_words_are_mapped(make, tmp_path):
    """With usewordmap, words that the map has not are unknown, even tokens."""
    (tmp_path / "map").write_text("boston boston\ntulsa boston\nEOS EOS\n\nBOS BOS\n")
    blocks = BLOCKS.replace("labelIn=[", "labelIn=[usewordmap=true;")
    (sentence,) = walk(make("wordmap={0}/map", blocks, text_of(SENTENCES[1:2])).minibatches())
    assert [word for word, _ in sentence] == ["<unk>", "<unk>", "boston", "boston", "EOS"]


def test_blocks_of_other_names(make):
    blocks = "words=[token={0}/in]\ntags=[token={0}/out]\nx=[dim=0]\nsequence=[wrecords=2]\ny=[dim=1]"
    reader = make("inputLabel=words\noutputLabel=tags", blocks)
    assert reader.dims() == {"words": 7, "x": 7, "tags": 4}
    assert any("block reader.sequence has no effect" in line for line in reader.warnings)


def test_the_begin_as_section_7_4_of_the_book_spells_it(make):
    reader = make("", BLOCKS.replace("beginSequence=BOS", "beginingSequence=BOS"))
    assert reader.begin == make().begin == "BOS"
    assert not any("beginingSequence" in line for line in reader.warnings)


def test_lines_without_a_label_are_named(make):
    reader = make(text="flight O\nfrom\nboston B-from\n")
    assert [key for key, _ in reader.skipped] == ["text:2"]
    assert reader.num_frames == 2


@pytest.mark.parametrize(
    ("options", "blocks", "text", "message"),
    [
        ("", "labels=[token={0}/out]", "", "reader has no block labelIn; expected it, with token=..., or inputLabel="),
        (
            "inputLabel=x\noutputLabel=X",
            BLOCKS,
            "",
            "lu.cntk:4: reader.outputLabel is X, as inputLabel; expected a block",
        ),
        (
            "ioNodeNames=[a=b]",
            BLOCKS,
            "",
            "lu.cntk:3: reader.ioNodeNames is for several inputs and outputs",
        ),
        ("dataMultiPass=true", BLOCKS, "", "dataMultiPass is true; expected false"),
        ("", BLOCKS, "", "text: no sentence; expected at least one"),
        ("", BLOCKS, "flight O\nfrom B-date\n", r"text:2: label 'B-date'; expected one of the tokens of labels"),
        ("unk=UNK", BLOCKS, "flight O\ntulsa O\n", r"text:2: word 'tulsa'; expected one of the tokens of labelIn"),
        ("", BLOCKS.replace("{0}/in", "{0}/no"), "", "lu.cntk:4: reader.labelIn.token: .*no: No such file"),
        (
            "",
            BLOCKS.replace("labels=[", "labels=[mode=class;"),
            "",
            "out:1: 'O'; expected `token class`, each token once",
        ),
        ("", BLOCKS.replace("labels=[", "labels=[mode=some;"), "", "labels.mode is 'some'; expected plain or class"),
        ("", BLOCKS.replace("labels=[", "labels=[labelDim=3;"), "", "labelDim is 3; expected at least 4, the tokens"),
        ("", BLOCKS.replace("{0}/out", "{0}/text"), "a\nb\na\n", r"text:3: 'a'; expected one token, each once"),
        ("", BLOCKS.replace("{0}/out", "{0}/text"), "a b\n", r"text:1: 'a b'; expected one token"),
        ("", BLOCKS.replace("{0}/out", "{0}/text"), "\n", "text: no tokens; expected one per line"),
        (
            "",
            BLOCKS.replace("labelIn=[", "labelIn=[usewordmap=true;"),
            "",
            "reader.wordmap is missing; expected it beside usewordmap=true",
        ),
        (
            "wordmap={0}/text",
            BLOCKS.replace("labelIn=[", "labelIn=[usewordmap=true;"),
            "a\n",
            "text:1: 'a'; expected `w",
        ),
        (
            "wordmap={0}/text",
            BLOCKS.replace("labelIn=[", "labelIn=[usewordmap=true;"),
            "a x\n",
            "text:1: word 'x'; exp",
        ),
    ],
)
def test_faults(make, options, blocks, text, message):
    with pytest.raises(ArgonautError, match=message) as caught:
        make(options, blocks, text)
    assert "\n" not in str(caught.value)


def writer_of(kind, directory, block: str):
    return kind(Config.from_text(f"writer=[\n{block}\n]".replace("{0}", str(directory)), "w.cntk").block("writer"))


@pytest.mark.parametrize(
    ("kind", "tokens"), [(LUSequenceWriter, "x\ny\nz\n"), (LMSequenceWriter, "0 5 x 0\n1 4 y 0\n2 1 z 1\n")]
)
def test_the_most_likely_tokens_are_written(tmp_path, kind, tokens):
    (tmp_path / "tokens").write_text(tokens)
    with writer_of(kind, tmp_path, "out=[file={0}/d/out.txt;token={0}/tokens]") as writer:
        assert (writer.nodes, writer.output_files()) == (["out"], [f"{tmp_path}/d/out.txt"])
        writer.check({"out": 3, "labels": 7}, 2)
        first = np.array([[0.1, 0.9, 0.5], [0.7, 0.0, 0.5], [0.2, np.nan, 0.1]])
        assert writer.write(Utterance("a", {}, 0), {"out": np.nan_to_num(first)}) == {}
        assert writer.write(Utterance("b", {}, 1), {"out": np.array([[0.0, -1], [0, -np.inf], [1, -2]])}) == {"out": 1}
        assert not (tmp_path / "d" / "out.txt").exists()
    assert (tmp_path / "d" / "out.txt").read_text() == "y x x\nz x\n"


def test_nothing_is_left_of_a_run_that_fails(tmp_path):
    (tmp_path / "tokens").write_text("x\n")
    with pytest.raises(KeyError), writer_of(LUSequenceWriter, tmp_path, "o=[file={0}/out;token={0}/tokens]") as writer:
        writer.check({"o": 1}, 1)
        writer.write(Utterance("a", {}, 0), {"o": np.zeros((1, 2))})
        assert len(list(tmp_path.iterdir())) == 2
        raise KeyError
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokens"]


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("", "writer has no outputs; expected a block named as a node"),
        ("o=[file={0}/o;token={0}/tokens;nbest=5]", "writer.o.nbest is 5; expected 1"),
        ("o=[file={0}/o;token={0}/nowhere]", "w.cntk:2: writer.o.token: .*nowhere: No such file"),
        (
            "o=[file={0}/o;token={0}/tokens]\np=[file={0}/o;token={0}/tokens]",
            "o is also that of o; expected one file for",
        ),
        ("p=[file={0}/o;token={0}/tokens]", "node p is not among the outputs; expected one of o"),
        ("o=[file={0}/o;token={0}/tokens]", "node o has 2 rows; expected 1, one for each token"),
    ],
)
def test_faults_of_writers(tmp_path, block, message):
    (tmp_path / "tokens").write_text("x\n")
    with pytest.raises(ArgonautError, match=message):
        writer_of(LUSequenceWriter, tmp_path, block).check({"o": 2}, 1)


CLASSED = ["O 0", "B-from 1", "B-to 1", "I-to 3"]  # class 2 is empty


def test_labels_by_class(make, tmp_path):
    (tmp_path / "classed").write_text("\n".join(CLASSED) + "\n\nignored\n")
    reader = make(
        "nbruttsineachrecurrentiter=2\nwordContext=0:1",
        BLOCKS.replace("labels=[token={0}/out", "labels=[mode=class;token={0}/classed"),
    )
    assert reader.dims() == {"labelIn": 14, "features": 14, "labels": 4}
    assert reader.num_words_and_classes == (4, 4)
    assert reader.vocabularies()["labels"] == VocabularyRecord(tuple(LABELS), (), (0, 1, 1, 3))
    assert reader.vocabularies()["features"].classes == ()
    rows = {"O": (0, 0, 0, 1), "B-from": (1, 1, 1, 3), "B-to": (2, 1, 1, 3), "I-to": (3, 3, 3, 4)}
    for sentence, (_, matrices) in zip(SENTENCES, reader.utterances(), strict=True):
        expected = np.array([rows[label] for _, label in sentence], np.float32).T
        np.testing.assert_array_equal(matrices["labels"], expected)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["O 0", "O 1"], "classed:2: 'O 1'; expected `token class`, each token once"),
        (["O 0", "B -1"], "classed:2: 'B -1'; expected `token class`"),
        (["O 1", "B 0"], "classed:2: class 0 after class 1; expected the tokens of each class together"),
        (["", "O 1"], "classed: no tokens; expected lines `token class`"),
    ],
)
def test_faults_of_classed_labels(tmp_path, lines, message):
    (tmp_path / "classed").write_text("\n".join(lines) + "\n")
    with pytest.raises(FormatError, match=message):
        read_classed_tokens(tmp_path / "classed")


def nbest_writer(tmp_path, nbest, mode="plain"):
    (tmp_path / "classed").write_text("\n".join(CLASSED) + "\n")
    (tmp_path / "plain").write_text("\n".join(LABELS) + "\n")
    token, own = tmp_path / ("classed" if mode == "class" else "plain"), "mode=class" if mode == "class" else ""
    block = f"writer=[mode=nce\nout=[file={tmp_path}/tags;token={token};nbest={nbest};{own}]\n]"
    return LUSequenceWriter(Config.from_text(block, "w.cntk").block("writer"))


@pytest.mark.parametrize("mode", ["plain", "class"])
def test_nbest_labels_of_each_word(tmp_path, mode):
    scores = np.array([[0, 5, 1], [3, 5, 2], [1, 6, 3], [2, 0, 4]], float)
    with nbest_writer(tmp_path, 2, mode) as writer:
        writer.check({"out": 4}, 1)
        writer.write(Utterance("u", {}, 0), {"out": scores})
    assert (tmp_path / "tags").read_text() == "B-from I-to B-to O I-to B-to\n"


@pytest.mark.parametrize(("nbest", "expected"), [(0, "at least 1"), (5, "1 to 4, the number of tok")])
def test_nbest_is_at_most_the_number_of_labels(tmp_path, nbest, expected):
    with pytest.raises(ArgonautError, match=rf"w\.cntk:2: writer\.out\.nbest is {nbest}; expected {expected}"):
        nbest_writer(tmp_path, nbest)
