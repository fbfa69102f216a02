"""Pairs of sentences: which belong together, how they stand side by side, and in which order."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers.config.config import Config
from readers.errors import ConfigError, FormatError
from readers.minibatches.sequence_layout import SequenceLayout
from readers.minibatches.sequence_pairs import PairLayout
from readers.sources.records.uci_reader import UCIFastReader
from readers.sources.sentences.lm_sequence_reader import LMSequenceReader
from readers.sources.sentences.pair_reader import PairReader

WORDS = ["<s>", "</s>", "a", "b", "c", "d"]
BLOCK = """mode=softmax; nbruttsineachrecurrentiter={parallel}; randomize={order}; file={file}
labelIn=[ labelMappingFile=words; beginSequence="<s>"; endSequence="</s>" ]; labels=[ labelType=nextWord ]"""


@pytest.fixture(autouse=True)
def words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words").write_text("\n".join(WORDS) + "\n")


def text_reader(name, lines, parallel=0, order="none"):
    Path(name).write_text("".join(f"{line}\n" for line in lines))
    return LMSequenceReader(Config.from_text(BLOCK.format(file=name, parallel=parallel, order=order), "p.cntk"))


def pairs(sources, targets, parallel=0, order="none", seed=0):
    return PairReader(text_reader("s", sources), text_reader("t", targets, parallel, order), seed)


def spoken(matrix, layout):
    """The words of every sequence, slot after slot."""
    numbers = np.asarray(matrix).argmax(axis=0).reshape(layout.num_steps, layout.num_sequences)
    return [[WORDS[number] for number in numbers[~layout.gaps[:, slot], slot]] for slot in range(layout.num_sequences)]


def test_lines_of_one_number_belong_together_and_stand_in_one_slot():
    reader = pairs(["a b", "", "c", "d d d", "a"], ["b a", "c", "c c c", "d"], parallel=2)
    assert reader.num_utterances == 3
    assert reader.num_frames == 3 + 4 + 2
    assert {name for name, _ in reader.skipped} == {"s:5", "t:2"}
    first, second = reader.minibatches(0, 100)
    assert isinstance(first.layout, PairLayout)
    assert spoken(first.matrices["encoder.labelIn"], first.layout.source) == [["<s>", "a", "b"], ["<s>", "c"]]
    assert spoken(first.matrices["labelIn"], first.layout.target) == [["<s>", "b", "a"], ["<s>", "c", "c", "c"]]
    assert spoken(first.matrices["labels"], first.layout.target) == [["b", "a", "</s>"], ["c", "c", "c", "</s>"]]
    assert (first.num_frames, second.num_frames) == (7, 2)
    assert spoken(second.matrices["encoder.features"], second.layout.source) == [["<s>", "d", "d", "d"]]
    assert reader.target_words(1) == ["c", "c", "c"]
    assert reader.dims()["encoder.features"] == reader.dims()["features"] == len(WORDS)
    assert reader.places()["encoder.features"].startswith("p.cntk:")


def test_as_many_pairs_as_make_a_minibatch():
    reader = pairs(["a"] * 7, ["a b"] * 7)
    assert [minibatch.num_frames for minibatch in reader.minibatches(0, 7)] == [6, 6, 6, 3]
    assert [minibatch.num_frames for minibatch in reader.minibatches(0, 1)] == [3] * 7


def test_the_order_follows_from_seed_and_epoch():
    lines = ["a", "b", "c", "d", "a b", "b c", "c d", "d a"]

    def order(seed, epoch, epoch_size=0):
        reader = pairs(lines, lines, parallel=1, order="auto", seed=seed)
        batches = reader.minibatches(epoch, 10, epoch_size)
        return [" ".join(spoken(batch.matrices["labelIn"], batch.layout.target)[0][1:]) for batch in batches]

    assert sorted(order(0, 0)) == sorted(lines)
    assert order(0, 1) == order(0, 1)
    assert len({tuple(order(seed, epoch)) for seed in (0, 1) for epoch in (0, 1)}) == 4
    # Parts of a sweep make a sweep.
    assert sorted(order(0, 0, 10) + order(0, 1, 10)) == sorted(lines)


def test_what_cannot_be_paired_is_refused(tmp_path):
    with pytest.raises(FormatError, match="no pair of sentences; expected at least one; first error: s:1: no target"):
        pairs(["a", ""], ["", "b"])
    (tmp_path / "points").write_text("1 0\n")
    points = UCIFastReader(
        Config.from_text("file=points\nx=[start=0; dim=1]\ny=[start=1; dim=1; labelDim=2]", "p.cntk")
    )
    with pytest.raises(ConfigError, match="decoderReader: UCIFastReader; expected LMSequenceReader or"):
        PairReader(text_reader("s", ["a"]), points)


@given(
    st.lists(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=3), min_size=1, max_size=4)
)
def test_columns_of_pairs(slots):
    def layout(side):
        lengths = [[pair[side] for pair in slot] for slot in slots]
        steps = max(map(sum, lengths))
        starts, ends, gaps = (np.full((steps, len(slots)), value) for value in (False, False, True))
        for slot, some in enumerate(lengths):
            ends[np.cumsum(some) - 1, slot] = True
            starts[np.cumsum([0, *some[:-1]]), slot] = True
            gaps[: sum(some), slot] = False
        return SequenceLayout(len(slots), steps, starts, ends, gaps)

    both = PairLayout(layout(0), layout(1))
    assert both.num_pairs == sum(map(len, slots))
    number = 0
    for slot, some in enumerate(slots):
        begin = [0, 0]
        for lengths in some:
            width = len(slots)
            assert both.source_starts[number] == begin[0] * width + slot
            assert both.source_ends[number] == (begin[0] + lengths[0] - 1) * width + slot
            assert both.target_starts[number] == begin[1] * width + slot
            mine = (begin[1] + np.arange(lengths[1])) * width + slot
            assert (both.target_sequence[mine] == number).all()
            begin = [begin[0] + lengths[0], begin[1] + lengths[1]]
            number += 1
    assert (both.target_sequence == -1).sum() == both.target.gaps.sum()
