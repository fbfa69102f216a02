"""LMSequenceReader on small texts, every column against the text itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.config.config import Config
from readers.errors import ArgonautError, FormatError
from readers.language.vocabulary import VocabularyWord, read_vocabulary, write_vocabulary
from readers.sources.sentences.lm_sequence_reader import LMSequenceReader, class_table
from readers.sources.sentences.sentences import group_sentences

WORDS = ["</s>", "the", "<unk>", "a", "cat", "dog", "sat"]
CLASSES = [0, 0, 0, 1, 1, 3, 3]  # class 2 is empty
TEXT = [
    "</s> the cat sat </s>",
    "</s> a dog </s>",
    "",
    "</s> the dog sat </s>",
    "</s> a \t unicorn </s>",
    "</s> </s>",
    "</s> the cat sat the dog sat a cat </s>",
    "</s> cat dog sat </s>",
]
SENTENCES = [[word if word in WORDS else "<unk>" for word in line.split()] for line in TEXT if len(line.split()) > 2]
FRAMES = sum(len(words) - 1 for words in SENTENCES)
LABELS = "labelIn=[labelDim=7;beginSequence=</s>;endSequence=</s>]\nlabels=[labelDim=7;labelType=nextWord]"


@pytest.fixture
def make(tmp_path):
    """make(options, labels, text, words): a reader; the blocks come after the options."""
    words = [VocabularyWord(word, 9, number) for word, number in zip(WORDS, CLASSES)]
    write_vocabulary(tmp_path / "vocabulary", words)

    def reader(options: str = "", labels: str = LABELS, text=TEXT, seed: int = 1) -> LMSequenceReader:
        (tmp_path / "text").write_text("\n".join(text) + "\n")
        block = f"reader=[\nfile={tmp_path}/text\nwordclass={tmp_path}/vocabulary\n{options}\n{labels}\n]"
        return LMSequenceReader(Config.from_text(block, "lm.cntk").block("reader"), seed)

    return reader


def walk(minibatches) -> list[list[str]]:
    """The sentences in order of their beginnings, from the layout, inputs and labels; checks every column."""
    sentences: list[list[str]] = []
    slots: dict[int, list[str] | None] = {}
    promised: dict[int, str] = {}
    for minibatch in minibatches:
        layout, labels = minibatch.layout, minibatch.matrices["labels"]
        inputs = np.asarray(minibatch.matrices["features"])
        assert inputs.shape == (7, layout.num_columns)
        assert labels.shape == (4, layout.num_columns)
        assert (inputs.dtype, labels.dtype, inputs.flags.f_contiguous, labels.flags.f_contiguous) == (
            *(np.float32, np.float32, True, True),
        )
        assert minibatch.num_frames == layout.num_frames
        for step in range(layout.num_steps):
            for slot in range(layout.num_sequences):
                column = step * layout.num_sequences + slot
                if layout.gaps[step, slot]:
                    assert not inputs[:, column].any()
                    assert not labels[:, column].any()
                    continue
                (word,) = np.flatnonzero(inputs[:, column])
                assert inputs[word, column] == 1
                assert minibatch.classes["features"][column] == word
                if layout.starts[step, slot]:
                    slots[slot] = []
                    sentences.append(slots[slot])
                slots[slot].append(WORDS[word])
                following, word_class, first, behind = (int(value) for value in labels[:, column])
                assert word_class == CLASSES[following]
                assert [number for number, one in enumerate(CLASSES) if one == word_class] == list(range(first, behind))
                if len(slots[slot]) > 1:
                    assert slots[slot][-1] == promised[slot]
                promised[slot] = WORDS[following]
                if layout.ends[step, slot]:
                    slots[slot].append(WORDS[following])
                    slots[slot] = None
    return sentences


@pytest.mark.parametrize("parallel", [0, 1, 2, 5])
@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("block", [5, 50000])
def test_every_word_once_in_order(make, parallel, size, block):
    reader = make(f"nbruttsineachrecurrentiter={parallel}\ncacheBlockSize={block}")
    assert (reader.num_frames, reader.num_utterances, reader.in_sequence) == (FRAMES, len(SENTENCES), True)
    assert reader.dims() == {"labelIn": 7, "features": 7, "labels": 4}
    for epoch in (0, 1):
        minibatches = list(reader.minibatches(epoch, size))
        assert sorted(walk(minibatches)) == sorted(SENTENCES)
        assert all(m.layout.num_steps <= size and m.layout.gap_columns is None for m in minibatches)
        if parallel:
            assert max(m.layout.num_sequences for m in minibatches) <= parallel


def test_labels_are_the_words_that_follow(make):
    (minibatch,) = make("randomize=none", text=["</s> the cat sat </s>"]).minibatches(0, 10)
    assert minibatch.matrices["features"].argmax(axis=0).tolist() == [0, 1, 4, 6]
    assert minibatch.matrices["labels"].T.tolist() == [[1, 0, 0, 3], [4, 1, 3, 5], [6, 3, 5, 7], [0, 0, 0, 3]]
    assert minibatch.classes["labels"].tolist() == [1, 4, 6, 0]
    assert minibatch.matrices["labelIn"] is minibatch.matrices["features"]


def test_sentences_of_one_length_stand_side_by_side(make):
    reader = make("randomize=false\nnbruttsineachrecurrentiter=10")
    minibatches = list(reader.minibatches(0, 3))
    # Four of 4 words, cut after 3; two of 3; one of 9.
    assert [(m.layout.num_sequences, m.layout.num_steps) for m in minibatches] == [
        *((3, 3), (3, 1)),
        *((2, 3),),
        *((1, 3), (1, 3), (1, 3)),
    ]
    assert walk(minibatches) == [SENTENCES[k] for k in (0, 2, 5, 1, 3, 4)]


@pytest.mark.parametrize("size", [FRAMES, FRAMES + 1, 3 * FRAMES])
def test_an_epoch_larger_than_the_text_is_the_text(make, size):
    reader = make()
    assert sum(one.num_frames for one in reader.minibatches(1, 5, size)) == FRAMES
    assert walk(reader.minibatches(2, 5, size)) == walk(reader.minibatches(2, 5))


def test_order_depends_on_seed_and_epoch_only(make):
    first = make()
    epochs = [walk(first.minibatches(epoch, 3, 12)) for epoch in range(5)]
    assert walk(make().minibatches(4, 3, 12)) == epochs[4]
    row = [words for sweep in range(4) for words in walk(make().minibatches(sweep, 3))]
    assert [words for epoch in epochs for words in epoch] == row[: sum(map(len, epochs))]
    assert walk(make(seed=2).minibatches(0, 3)) != walk(make().minibatches(0, 3))


def test_whole_sentences_for_writing(make):
    utterances = list(make().utterances())
    assert [one.key for one in utterances] == ["text:1", "text:2", "text:4", "text:5", "text:7", "text:8"]
    for utterance, words in zip(utterances, SENTENCES):
        found = [WORDS[k] for k in utterance.matrices["features"].argmax(axis=0)]
        assert found == words[:-1]


def test_softmax_takes_one_hot_labels_and_a_plain_list_of_words(make, tmp_path):
    (tmp_path / "words").write_text("\n".join(WORDS) + "\n")
    labels = f"a=[labelMappingFile={tmp_path}/words;beginSequence=</s>]\nz=[labelDim=7]\nwords=[dim=0]"
    reader = make('mode=softmax\nwordclass=""', labels)
    assert reader.dims() == {"a": 7, "words": 7, "z": 7}
    (minibatch,) = list(reader.minibatches(0, 100))[:1]
    words, following = (minibatch.matrices[name].argmax(axis=0) for name in "az")
    slots = minibatch.layout.num_sequences
    np.testing.assert_array_equal(words[slots:], following[:-slots])


def test_one_block_of_labels_and_marks_that_are_missing(make):
    """The book's example has labelIn alone; sentences without marks get them."""
    reader = make("randomize=None", "labelIn=[labelDim=7;beginSequence=</s>;endSequence=</s>]", ["the cat", "a"])
    assert reader.dims() == {"labelIn": 7, "features": 7, "labels": 4}
    assert walk(reader.minibatches(0, 9)) == [["</s>", "the", "cat", "</s>"], ["</s>", "a", "</s>"]]


def test_short_lines_are_named(make):
    ((key, reason),) = make().skipped
    assert key == "text:6"
    assert reason.endswith("text:6: fewer than 3 tokens")


@pytest.mark.parametrize(
    ("options", "labels", "text", "message"),
    [
        ("mode=noise", LABELS, TEXT, "lm.cntk:4: reader.mode is 'noise'; expected class or softmax or nce"),
        ("randomize=3", LABELS, TEXT, "reader.randomize is '3'; expected auto"),
        ("nbruttsineachrecurrentiter=-1", LABELS, TEXT, "nbruttsineachrecurrentiter is -1; expected at least 0"),
        ("", "labelIn=[labelDim=-1]", TEXT, "labelIn.labelDim is -1; expected at least 0"),
        ("", "labelIn=[labelType=regression]", TEXT, "labelType is 'regression'; expected category or nextWord"),
        ("", "features=[dim=0]", TEXT, "reader has 0 blocks of labels; expected two, the"),
        ('wordclass=""', LABELS, TEXT, "reader has no wordclass; expected the file"),
        ("file=nowhere", LABELS, TEXT, "lm.cntk:4: reader.file: nowhere: No such file"),
        ("", LABELS, [], "text: no sentence; expected at least one"),
        ("", LABELS, ["a"], "no sentence"),
        ("unk=UNK", LABELS, TEXT, r"text:5: word 'unicorn' is not in the vocabulary; expected a known word, or 'UNK'"),
    ],
)
def test_faults(make, options, labels, text, message):
    if text == ["a"]:
        labels = "labelIn=[labelDim=7]"
    with pytest.raises(ArgonautError, match=message) as caught:
        make(options, labels, text)
    assert "\n" not in str(caught.value)


def test_words_behind_the_first_labeldim_are_unknown(make):
    """A vocabulary may have more words than the network, as in the tool; its last class then has fewer."""
    labels = "labelIn=[labelDim=6;beginSequence=</s>]\nlabels=[labelDim=6]"
    reader = make("randomize=none", labels, ["</s> the cat sat </s>"])
    assert reader.dims() == {"labelIn": 6, "features": 6, "labels": 4}
    assert reader.num_words_and_classes == (6, 4)
    (minibatch,) = reader.minibatches(0, 10)
    assert minibatch.classes["features"].tolist() == [0, 1, 4, 2]
    assert minibatch.matrices["labels"].T.tolist() == [[1, 0, 0, 3], [4, 1, 3, 5], [2, 0, 0, 3], [0, 0, 0, 3]]
    (warning,) = [line for line in reader.warnings if "labelDim" in line]
    assert "labelDim is 6; the vocabulary has 7 words; words from number 6 on count as unknown" in warning
    assert not any("labelDim" in line for line in make().warnings)


@pytest.mark.parametrize("mode", ["class", "softmax", "nce"])
def test_a_labeldim_above_the_vocabulary_leaves_rows_unused(make, mode):
    """As in the tool's examples, whose labelDim is 10000 for any text."""
    text = ["</s> the cat sat </s>"]
    options = f"randomize=none; mode={mode}; noise_number=3"
    plain, wide = (make(options, LABELS.replace("labelDim=7", f"labelDim={rows}"), text) for rows in (7, 9))
    assert wide.dims() == plain.dims() | {"labelIn": 9, "features": 9} | ({"labels": 9} if mode == "softmax" else {})
    warnings = [line.partition("reader.")[2] for line in wide.warnings if "labelDim" in line]
    note = "labelDim is 9; the vocabulary has 7 words; other rows are not used"
    assert warnings == [f"labelIn.{note}", f"labels.{note}"]
    assert wide.records == plain.records
    for ours, expected in zip(wide.minibatches(0, 10), plain.minibatches(0, 10), strict=True):
        for name in ("labelIn", "labels"):
            matrix, other = (np.asarray(one.matrices[name]) for one in (ours, expected))
            np.testing.assert_array_equal(matrix[: len(other)], other)
            assert not matrix[len(other) :].any()


def test_what_is_said_of_a_cache_is_passed_over(make):
    """As the tool's examples have it, in the reader and in its blocks, with a block of its own beside `features`."""
    labels = LABELS.replace(
        "labels=[", "labels=[elementSize=4;sectionType=labels;mapping=[wrecords=3];category=[dim=3];"
    )
    blocks = f"{labels}\nsequence=[dim=1;wrecords=2;sectionType=data]\nfeatures=[dim=0;sectionType=data]"
    reader = make("wfile=cache.bin\nwsize=256\nwrecords=1000\nwindowSize=7", blocks)
    assert reader.dims() == {"labelIn": 7, "features": 7, "labels": 4}
    assert reader.warnings == ["lm.cntk:10: block reader.sequence has no effect"]


def test_warnings(make):
    reader = make("unk=UNK\nnbruttineachrecurrentiter=10", LABELS + "\nsequence=[wrecords=2]", ["</s> the cat </s>"])
    assert any("nbruttineachrecurrentiter is not known here; did you mean nbrutts" in line for line in reader.warnings)
    assert any("block reader.sequence has no effect" in line for line in reader.warnings)
    assert any("'UNK' (unk) is not in the vocabulary" in line for line in reader.warnings)


def test_frames_cannot_be_assembled_anywhere(make):
    with pytest.raises(RuntimeError, match="cannot begin at any position"):
        make().assemble(0, 3)


@given(
    *(st.lists(st.integers(1, 5), max_size=30), st.integers(0, 4), st.integers(1, 9), st.booleans(), st.integers(1, 20))
)
def test_groups_take_every_sentence_once(lengths, parallel, size, same_length, block):
    groups = list(group_sentences(lengths, parallel, size, same_length, block))
    assert sorted(one for group in groups for one in group) == list(range(len(lengths)))
    for group in groups:
        assert group == sorted(group)
        if same_length:
            assert len({lengths[one] for one in group}) == 1
        assert len(group) <= (parallel or max(1, size // lengths[group[0]]))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.data())
def test_vocabularies_are_read_as_written(tmp_path_factory, steps, data):
    names = st.text("abcü:\"'\\", min_size=1, max_size=4)
    words = data.draw(st.lists(names, min_size=len(steps), max_size=len(steps), unique=True))
    classes = np.cumsum(steps).tolist()
    vocabulary = [VocabularyWord(word, 3 * k, one) for k, (word, one) in enumerate(zip(words, classes))]
    path = tmp_path_factory.mktemp("v") / "vocabulary"
    write_vocabulary(path, vocabulary)
    assert read_vocabulary(path) == vocabulary
    for number, one in enumerate(class_table(vocabulary).T.tolist()):
        members = [k for k, word in enumerate(vocabulary) if word.word_class == classes[number]]
        assert one == [number, classes[number], members[0], members[-1] + 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no entries; expected lines `number count word class`"),
        ("0 5 a\tb 0\n", r":1: '0 5 a\\tb 0'; expected `number count word class`"),
        ("0 5 a 0\nx 5 b 0\n", ":2: 'x 5 b 0'; expected `number"),
        ("0 5 a 0\n2 5 b 0\n", ":2: number 2; expected number 1, each word once"),
        ("0 5 a 0\n1 5 a 0\n", ":2: word 'a' again; expected number 1"),
        ("0 5 a 1\n1 5 b 0\n", ":2: class 0 after class 1; expected the words of each class together"),
    ],
)
def test_vocabularies_that_are_none(tmp_path, text, message):
    (tmp_path / "v").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_vocabulary(tmp_path / "v")


def test_counts_may_be_missing(tmp_path):
    (tmp_path / "v").write_text("0 a 0\n\n1 b 2\n")
    assert read_vocabulary(tmp_path / "v") == [VocabularyWord("a", 0, 0), VocabularyWord("b", 0, 2)]
