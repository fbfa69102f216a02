"""UCIFastReader on small files whose every number is known."""

import numpy as np
import pytest

from readers.config.config import Config
from readers.errors import ArgonautError, ConfigError, FormatError
from readers.minibatches.base import open_reader
from readers.sources.records import records as records_module
from readers.sources.records.uci_reader import UCIFastReader

COUNT = 23


@pytest.fixture
def data(tmp_path):
    """Record i is `i -i/2 name i/4`, its name the remainder of i by 3."""
    names = ["two", "zero", "one"]
    lines = [f"{i} {-i / 2} {names[i % 3]} {i / 4}" for i in range(COUNT)]
    (tmp_path / "data.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def config(directory, text: str = "", blocks: str | None = None) -> Config:
    blocks = blocks or (
        f"features=[dim=2;start=0]\nlabels=[start=2;dim=1;labelDim=3;labelMappingFile={directory}/map.txt]"
    )
    text = f"reader=[\nreaderType=UCIFastReader\nfile={directory}/data.txt\n{text}\n{blocks}\n]"
    return Config.from_text(text, "u.cntk").block("reader")


def visited(minibatches) -> list[int]:
    return [int(value) for minibatch in minibatches for value in minibatch.matrices["features"][0]]


@pytest.mark.parametrize("order", ["randomize=auto", "randomize=none", "randomize=8", ""])
@pytest.mark.parametrize("size", [1, 5, 100])
def test_every_record_once_with_its_label(data, order, size):
    reader = open_reader(config(data, f"{order}\nminiBatchMode=Partial\nverbosity=1"), 3)
    assert isinstance(reader, UCIFastReader)
    assert (reader.dims(), reader.streams) == ({"features": 2, "labels": 3}, ["features", "labels"])
    assert (reader.num_frames, reader.num_utterances, reader.unit, reader.warnings) == (COUNT, 1, "records", [])
    minibatches = list(reader.minibatches(0, size))
    for minibatch in minibatches:
        features, labels = minibatch.matrices["features"], minibatch.matrices["labels"]
        for matrix in (features, labels):
            assert (matrix.dtype, matrix.flags.f_contiguous, matrix.flags.writeable) == (np.float32, True, True)
        np.testing.assert_array_equal(features[1], -features[0] / 2)
        np.testing.assert_array_equal(minibatch.classes["labels"], features[0] % 3)
        np.testing.assert_array_equal(labels, np.eye(3)[:, minibatch.classes["labels"]])
    assert sorted(visited(minibatches)) == list(range(COUNT))
    assert (visited(minibatches) == list(range(COUNT))) == (order == "randomize=none")


def test_order_depends_on_seed_and_sweep_only(data):
    reader = UCIFastReader(config(data), 7)
    epochs = [visited(reader.minibatches(e, 4)) for e in range(3)]
    assert epochs[0] != epochs[1] != epochs[2]
    assert visited(UCIFastReader(config(data), 7).minibatches(2, 5)) == epochs[2]
    assert visited(UCIFastReader(config(data), 8).minibatches(0, 4)) != epochs[0]
    joined = [record for epoch in epochs for record in epoch]
    assert visited(reader.minibatches(1, 4, epoch_size=30)) == joined[30:60]


def test_training_is_told_to_take_full_minibatches_alone(data):
    assert not UCIFastReader(config(data, "minibatchMode=Full")).partial
    assert UCIFastReader(config(data)).partial


def test_map_is_written_once_in_order_of_appearance_and_reused(data):
    UCIFastReader(config(data))
    assert (data / "map.txt").read_text() == "two\nzero\none\n"
    (data / "map.txt").write_text("zero\none\ntwo\n\n")
    reader = UCIFastReader(config(data, "randomize=none"))
    assert next(reader.minibatches(0, 4)).classes["labels"].tolist() == [2, 0, 1, 2]
    assert (data / "map.txt").read_text() == "zero\none\ntwo\n\n"


def test_map_is_not_written_when_the_text_is_bad(data):
    with (data / "data.txt").open("a") as file:
        file.write("1 x two 3\n")
    with pytest.raises(FormatError, match=r"data.txt:24: 'x' in column 1"):
        UCIFastReader(config(data))
    assert not (data / "map.txt").exists()


def test_map_named_for_all_blocks_further_out(data):
    text = f"labelMappingFile={data}/map.txt\nlabelDim=3"
    reader = UCIFastReader(config(data, text, "features=[dim=2]\nlabels=[start=2;sectionType=labels]"))
    assert (reader.dims(), reader.warnings) == ({"features": 2, "labels": 3}, [])
    assert (data / "map.txt").read_text() == "two\nzero\none\n"


def test_class_numbers_without_a_map(data):
    (data / "data.txt").write_text("0.5 1\n0.25 0\n")
    reader = UCIFastReader(config(data, "randomize=none", "features=[dim=1]\nlabels=[start=1;labelDim=3]"))
    assert next(reader.minibatches(0, 9)).matrices["labels"].tolist() == [[0, 1], [1, 0], [0, 0]]


def test_several_inputs_and_outputs_from_several_files(data):
    (data / "more.txt").write_text("".join(f"k{i % 2},{i * 10}\n" for i in range(COUNT)))
    reader = UCIFastReader(
        config(
            data,
            'customDelimiter=","\nrandomize=none',
            f"x=[dim=2]\ny=[dim=1;start=1;file={data}/more.txt]\n"
            f"a=[start=2;labelMappingFile={data}/map.txt]\n"
            f"b=[file={data}/more.txt;labelType=category;labelMappingFile={data}/b.txt;labelDim=4]\n"
            "c=[start=3;dim=1;labelType=regression]\nd=[start=0;dim=2;sectionType=labels;labelType=regression]",
        )
    )
    assert reader.dims() == {"x": 2, "y": 1, "a": 3, "b": 4, "c": 1, "d": 2}
    minibatch = next(reader.minibatches(0, COUNT))
    records = np.arange(COUNT)
    np.testing.assert_array_equal(minibatch.matrices["y"], [records * 10])
    np.testing.assert_array_equal(minibatch.matrices["c"], [records / 4])
    np.testing.assert_array_equal(minibatch.matrices["d"], minibatch.matrices["x"])
    np.testing.assert_array_equal(minibatch.classes["b"], records % 2)
    assert minibatch.matrices["b"].shape == (4, COUNT)
    assert set(minibatch.classes) == {"a", "b"}


@pytest.mark.parametrize(("count", "blamed"), [(COUNT - 1, "more.txt"), (COUNT + 1, "data.txt")])
def test_files_with_different_numbers_of_records_are_refused_and_the_shorter_is_blamed(data, count, blamed):
    (data / "more.txt").write_text("5\n" * count)
    other = {"more.txt": "data.txt", "data.txt": "more.txt"}[blamed]
    with pytest.raises(FormatError) as fault:
        UCIFastReader(config(data, "randomize=none", f"x=[dim=2]\ny=[dim=1;file={data}/more.txt]"))
    assert str(fault.value) == (
        f"{data}/{blamed}: {min(count, COUNT)} records; expected the number of records of {data}/{other}"
    )


def test_writing_gives_the_records_in_order_without_labels(data):
    reader = open_reader(config(data), write=True)
    (piece,) = reader.utterances()
    assert list(piece.matrices) == ["features"]
    np.testing.assert_array_equal(piece.matrices["features"][0], np.arange(COUNT))
    assert (piece.key, piece.line) == ("data", 0)
    assert not (data / "map.txt").exists()


@pytest.mark.parametrize("size", [1, COUNT // 3, COUNT - 1, COUNT, COUNT + 1])
def test_records_are_written_in_pieces_that_lose_none(data, monkeypatch, size):
    monkeypatch.setattr(records_module, "PIECE_RECORDS", size)
    reader = open_reader(config(data), write=True)
    pieces = list(reader.utterances())
    assert len(pieces) == reader.num_utterances == -(-COUNT // size)
    assert [piece.key for piece in pieces] == ["data", *(f"data-{i}" for i in range(1, len(pieces)))]
    assert [piece.line for piece in pieces] == list(range(len(pieces)))
    values = np.concatenate([piece.matrices["features"] for piece in pieces], axis=1)
    np.testing.assert_array_equal(values[0], np.arange(COUNT))


def test_none_labels_are_not_read(data):
    reader = UCIFastReader(config(data, "", "features=[dim=2]\nlabels=[labelType=none;start=9]"))
    assert reader.dims() == {"features": 2}


@pytest.mark.parametrize(
    ("text", "blocks", "message"),
    [
        ("", "features=[dim=2]\nlabels=[start=2;labelDim=2;labelMappingFile=DIR/map.txt]",
         r"data.txt:3: label 'one' is number 3; expected at most 2 labels, which is labelDim \(u.cntk:6\)"),
        ("allowMapCreation=false", None, r"u.cntk:6: .*labelMappingFile: .*map.txt: no such file; expected the map"),
        ("", "features=[dim=2]\nlabels=[start=2;labelDim=3]", r"data.txt:1: label 'two'; expected a class number"),
        ("", "features=[dim=2]\nlabels=[start=2;labelDim=3;labelMappingFile=DIR/short]",
         r"data.txt:3: label 'one' is not in .*short; expected one of its lines"),
        ("", "features=[dim=2]\nlabels=[start=2;labelDim=1;labelMappingFile=DIR/short]",
         r"u.cntk:6: labelDim is 1; expected at least 2, the labels of .*short"),
        ("", "features=[dim=2]\nlabels=[start=2;dim=2;labelDim=3]", r"u.cntk:6: reader.labels.dim is 2; expected 1"),
        ("", "features=[dim=3]", r"data.txt:1: 'two' in column 2, counted from 0; expected a number"),
        ("", "features=[dim=2;start=4]", r"data.txt:1: 4 columns; expected at least 6, for start and dim"),
        ("", "features=[dim=0]", r"u.cntk:5: reader.features.dim is 0; expected at least 1"),
        ("", "labels=[labelType=regression]", r"u.cntk:5: reader.labels.dim is missing; expected the number of col"),
        ("", "labels=[labelType=regression;dim=0]", r"u.cntk:5: reader.labels.dim is 0; expected at least 1 column"),
        ("", "features=[start=0]", r"u.cntk:5: block reader.features has neither dim nor one of labelMappingFile"),
        ("", "features=[dim=2]\nmore=[dim=1;file=DIR/three.txt]", r"three.txt: 3 records; expected the number of"),
        ("", "features=[dim=2;file=DIR/empty.txt]", r"empty.txt: no records; expected one on each line"),
        ("", "features=[dim=2;file=DIR/nix.txt]", r"u.cntk:5: .*file: .*nix.txt: no such file"),
        ("oneLinePerFile=true", None, r"u.cntk:4: reader.oneLinePerFile is true; expected false"),
        ("randomize=-3", None, r"u.cntk:4: reader.randomize is '-3'; expected auto, none or a number"),
        ("customDecimalPoint=ab", None, r"customDecimalPoint is 'ab'; expected a punctuation character"),
        ("customDelimiter=.", None, r"customDelimiter is '\.', customDecimalPoint '\.'; expected two different"),
        ("", "dim=2", r"u.cntk:1: reader has no streams; expected a block with dim"),
    ],
)  # fmt: skip
def test_faults_are_one_line_with_their_place(data, text, blocks, message):
    (data / "short").write_text("two\nzero\n")
    (data / "three.txt").write_text("1\n2\n3")
    (data / "empty.txt").write_text("\n \n")
    with pytest.raises(ArgonautError, match=message) as caught:
        UCIFastReader(config(data, text, blocks and blocks.replace("DIR", str(data))))
    assert "\n" not in str(caught.value)


def test_unknown_names_are_warned_of(data):
    reader = UCIFastReader(config(data, "randomise=none", "features=[dim=2;strt=1]"))
    assert reader.warnings == [
        "u.cntk:4: reader.randomise is not known here; did you mean randomize",
        "u.cntk:5: reader.features.strt is not known here; did you mean start",
    ]


def test_unknown_reader_type_lists_the_known(data):
    with pytest.raises(ConfigError, match=r"u.cntk:2: readerType UCIReader is unknown; .*did you mean UCIFastReader"):
        block = Config.from_text("reader=[\nreaderType=UCIReader\n]", "u.cntk").block("reader")
        open_reader(block)
