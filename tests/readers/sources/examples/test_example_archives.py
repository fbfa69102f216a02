"""Example archives: every example once, within the stated error, read from end to end, and no damage goes unnoticed."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from readers.config.config import Config
from readers.errors import ArgonautError, ConfigError, FormatError
from readers.minibatches.base import Minibatch, open_reader
from readers.minibatches.indicators import Indicators
from readers.minibatches.sequence_layout import SequenceLayout
from readers.results.indexed_archive import ArchiveWriter, IndexedArchive
from readers.sources.examples import byte_coding, example_archive, example_reader
from readers.sources.examples.example_archive import ARCHIVE, ExampleArchive, ExampleStream, examples_per_block
from readers.sources.examples.example_reader import ExampleReader
from readers.sources.examples.example_writer import archive_path, write_examples
from recipes.file_kinds import describe_file

DIM, CLASSES = 5, 7


def source(count: int, size: int = 32, seed: int = 0):
    """Minibatches of `count` examples; row 0 of the features is the number of the example, and makes its class."""
    rng = np.random.default_rng(seed)
    for first in range(0, count, size):
        numbers = np.arange(first, min(first + size, count))
        features = rng.standard_normal((DIM, len(numbers))).astype(np.float32)
        features[0] = numbers
        classes = numbers * 3 % CLASSES
        labels = np.asfortranarray(np.eye(CLASSES, dtype=np.float32)[:, classes])
        yield Minibatch({"features": features, "labels": labels}, {"labels": classes}, len(numbers))


def reader(path, extra: str = "") -> ExampleReader:
    text = f"reader=[\nreaderType=ExampleReader\nfile={path}\n{extra}\n]"
    return open_reader(Config.from_text(text, "e.cntk").block("reader"))


def everything(opened: ExampleReader, size: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """(features, classes) of a sweep."""
    minibatches = list(opened.minibatches(0, size))
    assert [minibatch.num_frames for minibatch in minibatches[:-1]] == [size] * (len(minibatches) - 1)
    classes = np.concatenate([minibatch.classes["labels"] for minibatch in minibatches])
    labels = np.concatenate([minibatch.matrices["labels"] for minibatch in minibatches], axis=1)
    np.testing.assert_array_equal(labels, np.eye(CLASSES)[:, classes])
    return np.concatenate([minibatch.matrices["features"] for minibatch in minibatches], axis=1), classes


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(example_archive, "BLOCK_BYTES", 80)


@pytest.mark.parametrize(("archives", "memory"), [(1, 1 << 30), (4, 1 << 30), (1, 700)])
def test_every_example_is_there_once_in_another_order(tmp_path, small_blocks, archives, memory):
    path = tmp_path / "e"
    written = write_examples(path, source(100), 100, compress=False, archives=archives, memory=memory, seed=3)
    assert len(written) == (archives if memory > 700 else -(-100 * (4 * DIM + 4) // 700))
    assert sorted(tmp_path.iterdir()) == sorted(written)
    with reader(path) as opened:
        assert (opened.num_frames, opened.dims()) == (100, {"features": DIM, "labels": CLASSES})
        features, classes = everything(opened)
    np.testing.assert_array_equal(classes, features[0].astype(int) * 3 % CLASSES)
    order = features[0].astype(int)
    assert sorted(order) == list(range(100))
    assert np.mean(np.abs(order - np.arange(100))) > 20  # a third of 100 for a random order
    expected = np.concatenate([minibatch.matrices["features"] for minibatch in source(100)], axis=1)
    np.testing.assert_array_equal(features, expected[:, order])


def test_the_order_follows_from_the_seed_and_is_random(tmp_path):
    """Of many seeds, every example stands in the first half as often as in the second."""
    first_half = np.zeros(20)
    for seed in range(60):
        write_examples(tmp_path / "e", source(20), 20, compress=False, seed=seed, memory=200)
        with reader(tmp_path / "e") as opened:
            features, _ = everything(opened)
        first_half[features[0, :10].astype(int)] += 1
    assert abs(first_half - 30).max() < 5 * np.sqrt(15)
    contents = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    write_examples(tmp_path / "e", source(20), 20, compress=False, seed=59, memory=200)
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == contents


def test_any_cut_of_the_sweeps_gives_the_same_examples(tmp_path, small_blocks):
    write_examples(tmp_path / "e", source(50), 50, archives=3)
    with reader(tmp_path / "e") as opened:
        features, classes = everything(opened)
        for position, size in [(0, 50), (13, 1), (48, 30), (149, 103), (7, 43)]:
            which = np.arange(position, position + size) % 50
            minibatch = opened.assemble(position, size)
            np.testing.assert_array_equal(minibatch.matrices["features"], features[:, which])
            np.testing.assert_array_equal(minibatch.classes["labels"], classes[which])
            for matrix in minibatch.matrices.values():
                assert (matrix.dtype, matrix.flags.f_contiguous) == (np.float32, True)
        pieces = list(opened.utterances())
        assert [list(piece.matrices) for piece in pieces] == [["features"]]
        np.testing.assert_array_equal(pieces[0].matrices["features"], features)


def test_a_mismatch_of_features_is_ignored_only_if_the_configuration_says_so(tmp_path):
    write_examples(tmp_path / "e", source(5), 5)
    for extra, ignores in (("", False), ("ignoreFeatureMismatch=false", False), ("ignoreFeatureMismatch=true", True)):
        with reader(tmp_path / "e", extra) as opened:
            assert opened.ignores_feature_mismatch is ignores


@pytest.mark.parametrize("size", [7, 49, 50, 51])
def test_examples_are_written_in_pieces_that_lose_none(tmp_path, small_blocks, monkeypatch, size):
    monkeypatch.setattr(example_reader, "PIECE_EXAMPLES", size)
    write_examples(tmp_path / "e", source(50), 50, archives=3)
    with reader(tmp_path / "e") as opened:
        features, _ = everything(opened)
        pieces = list(opened.utterances())
        assert len(pieces) == opened.num_utterances == -(-50 // size)
        assert [(piece.key, piece.line) for piece in pieces] == [(f"e-{i}", i) for i in range(len(pieces))]
        np.testing.assert_array_equal(np.concatenate([p.matrices["features"] for p in pieces], axis=1), features)


def test_compressed_values_are_within_the_stated_error_and_take_a_byte(tmp_path):
    count = 3000
    write_examples(tmp_path / "raw", source(count), count, compress=False, seed=1)
    write_examples(tmp_path / "coded", source(count), count, seed=1)
    with reader(tmp_path / "raw") as raw, reader(tmp_path / "coded") as coded:
        (exact, one), (near, two) = everything(raw, 512), everything(coded, 512)
    np.testing.assert_array_equal(one, two)
    knots = byte_coding.knots_of(exact.T)
    assert (np.abs(near - exact) <= bounds_of(exact.T, knots).T).all()
    deviation = np.sqrt(np.mean((near - exact)[1:] ** 2))
    assert 0.005 < deviation < 0.009  # of normal values of deviation 1
    assert archive_path(tmp_path / "coded", 1).stat().st_size < count * (DIM + 4) + 1500


def test_knots_are_a_small_part_of_a_wide_archive():
    streams = (ExampleStream("features", "byte", 1680), ExampleStream("labels", "class", 132))
    count = examples_per_block(streams)
    size = count * sum(stream.example_bytes for stream in streams)
    assert 0.01 * size > 4 * 4 * 1680
    assert size == count * (1680 + 4) < 5_000_000


ROUNDING = 2.0**-22  # relative to the largest magnitude of the dimension: base, step and sum are rounded to float32
STEP_ROUNDING = 2.0**-15  # relative to a step, which is rounded to float32 and multiplied by up to 208


def bounds_of(values: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """The bound of the error of each value, by the stretch that it lies in."""
    stretch = (values >= knots[1]).astype(int) + (values > knots[2])
    largest = np.abs(knots.astype(np.float64)).max(axis=0)
    bounds = byte_coding.steps(knots) * (0.5 + STEP_ROUNDING) + largest * ROUNDING
    return np.take_along_axis(bounds, stretch, axis=0)


FLOATS = st.floats(-(2.0**127), 2.0**127, width=32, allow_subnormal=False)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(arrays(np.float32, st.tuples(st.integers(1, 120), st.integers(1, 3)), elements=FLOATS))
def test_byte_codes_of_any_finite_values_are_within_the_bound(values):
    knots = byte_coding.knots_of(values)
    decoded = byte_coding.decode(byte_coding.encode(values, knots), knots)
    error = np.abs(decoded.astype(np.float64) - values)
    assert (error <= bounds_of(values, knots) + np.finfo(np.float32).tiny).all()


def test_the_compiled_decoder_is_the_definition():
    knots = np.array([[-3, 0, 5], [-1, 0, 5], [2, 0, 5], [10, 4, 5]], np.float32)
    codes = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    expected = np.stack([np.interp(np.arange(256), byte_coding.KNOTS, knots[:, row]) for row in range(3)], axis=1)
    np.testing.assert_allclose(byte_coding.decode(codes, knots), expected, rtol=1e-6, atol=1e-6)


def test_an_outlier_spoils_no_other_values():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((4000, 1)).astype(np.float32)
    values[7] = 1e4
    knots = byte_coding.knots_of(values)
    decoded = byte_coding.decode(byte_coding.encode(values, knots), knots)
    middle = (values >= knots[1]) & (values <= knots[2])
    assert middle.mean() > 0.95
    assert np.abs(decoded - values)[middle].max() < 0.011
    assert decoded[7] == pytest.approx(1e4)


def test_reading_goes_through_every_archive_once_from_end_to_end(tmp_path, small_blocks, monkeypatch):
    write_examples(tmp_path / "e", source(90), 90, archives=2)
    places: list[tuple[str, int]] = []
    read = ExampleArchive._read

    def watched(self, block):
        read(self, block)
        places.append((self.path.name, self._archive.place(f"{block}")))

    monkeypatch.setattr(ExampleArchive, "_read", watched)
    with reader(tmp_path / "e") as opened:
        everything(opened, 7)
    assert len(places) > 6
    assert places == sorted(places)
    assert len(set(places)) == len(places) == sum(archive.described.num_blocks for archive in opened._set.archives)


@pytest.mark.parametrize("cut", [1, 100, 0.5, -8])
def test_a_truncated_archive_is_named(tmp_path, cut):
    path = write_examples(tmp_path / "e", source(90), 90, archives=2)[1]
    whole = path.read_bytes()
    keep = -cut if cut < 0 else len(whole) - cut if cut >= 1 else int(len(whole) * cut)
    path.write_bytes(whole[:keep])
    with pytest.raises(FormatError, match=r"e\.2: .*(expected a complete archive|expected an archive)"):
        reader(tmp_path / "e")


def test_bytes_too_many_are_named(tmp_path):
    (path,) = write_examples(tmp_path / "e", source(9), 9)
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(FormatError, match=r"e\.1: \d+ bytes, without the index at the end"):
        reader(tmp_path / "e")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_changed_byte_goes_unnoticed(tmp_path_factory, data):
    """But for zeros between the parts, which nobody reads."""
    path = tmp_path_factory.mktemp("archive") / "e"
    (file,) = write_examples(path, source(12), 12)
    with reader(path) as opened:
        before = everything(opened)
    raw = bytearray(file.read_bytes())
    place = data.draw(st.integers(0, len(raw) - 1))
    was_zero = not raw[place]
    raw[place] ^= data.draw(st.integers(1, 255))
    file.write_bytes(raw)
    try:
        with reader(path) as opened:
            after = everything(opened)
    except FormatError:
        return
    assert was_zero
    np.testing.assert_array_equal(np.concatenate(before, axis=None), np.concatenate(after, axis=None))


def test_archives_of_an_earlier_version_are_refused_with_the_way_out(tmp_path):
    (tmp_path / "e.1").write_bytes(b"ARGOEGS\n" + bytes(100))
    with pytest.raises(FormatError, match=r"e\.1: archive .* of an earlier version; make the archives again"):
        reader(tmp_path / "e")
    with pytest.raises(FormatError, match="of an earlier version; make the archives again"):
        describe_file(tmp_path / "e.1")


@pytest.mark.skipif(os.name == "nt", reason="has no named pipes")
def test_a_pipe_is_no_archive(tmp_path):
    os.mkfifo(tmp_path / "e.1")
    with pytest.raises(FormatError, match="a directory, a device or a pipe"):
        ExampleArchive(tmp_path / "e.1")


def test_a_missing_archive_and_one_of_another_set_are_named(tmp_path):
    first, second = write_examples(tmp_path / "e", source(60), 60, archives=2)
    _, other = write_examples(tmp_path / "o", source(60, seed=1), 60, archives=2)
    kept = second.read_bytes()
    second.write_bytes(other.read_bytes())
    with pytest.raises(FormatError, match=r"e\.2: archive 2 of 2 of set 3c-\w+; expected archive 2 of 2 of set 3c-"):
        reader(tmp_path / "e")
    second.unlink()
    with pytest.raises(FormatError, match=r"e\.2: missing; expected the archives 1 to 2 of the set"):
        reader(tmp_path / "e")
    first.write_bytes(kept)
    second.write_bytes(kept)
    with pytest.raises(FormatError, match=r"e\.1: archive 2 of 2, "):
        reader(tmp_path / "e")
    with pytest.raises(ConfigError, match=r"e\.cntk:3: reader\.file: .*nothing\.1: No such file"):
        reader(tmp_path / "nothing")


def rewritten(path, arrays=None, **changes) -> None:
    """Write an archive again with other arrays in its first block, or another description."""
    archive = IndexedArchive(path, ARCHIVE)
    with ArchiveWriter(path, ARCHIVE, archive.metadata | changes) as writer:
        for name in archive.names:
            writer.add(name, archive.record(name).arrays | (arrays or {}))


@pytest.mark.parametrize(
    "changes",
    [
        {"streams": []},
        {"per_block": 0},
        {"examples": -1},
        {"examples": True},
        {"number": 2},
        {"streams": 3},
    ]
    + [{"streams": [{"name": "x", "kind": kind, "dim": dim}]} for kind, dim in [("x", 1), ("byte", 0), ("byte", 1e9)]],
)
def test_a_description_that_cannot_be_is_refused(tmp_path, changes):
    (path,) = write_examples(tmp_path / "e", source(9), 9)
    rewritten(path, **changes)
    with pytest.raises(FormatError, match=r"e\.1: description \(.*expected streams and sizes"):
        reader(tmp_path / "e")


def test_blocks_larger_than_the_archive_take_no_memory_of_their_own(tmp_path):
    (path,) = write_examples(tmp_path / "egs", source(5), 5)
    whole = ExampleArchive(path).numbers(0, 0, 5)
    rewritten(path, per_block=2**61)
    np.testing.assert_array_equal(ExampleArchive(path).numbers(0, 0, 5), whole)


def test_a_class_out_of_range_is_named(tmp_path):
    (path,) = write_examples(tmp_path / "e", source(9), 9, compress=False)
    streams = [{"name": "features", "kind": "float", "dim": DIM}, {"name": "labels", "kind": "class", "dim": 3}]
    rewritten(path, streams=streams)
    with reader(tmp_path / "e") as opened, pytest.raises(FormatError, match=r"e\.1: classes 0 to 6 in labels; expect"):
        everything(opened)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("value", [np.nan, np.inf, -3e38])
def test_knots_that_do_not_rise_are_named(tmp_path, value):
    (path,) = write_examples(tmp_path / "e", source(9), 9)
    knots = IndexedArchive(path, ARCHIVE).record("0").arrays["0.knots"]
    knots[1, 0] = value
    rewritten(path, {"0.knots": knots})
    with pytest.raises(
        FormatError, match=r"e\.1: the codes of features stand for values that do not increase or are not"
    ):
        ExampleArchive(path).numbers(0, 0, 9)


@pytest.mark.parametrize(("shape", "kind"), [((9, DIM + 1), "|u1"), ((8, DIM), "|u1"), ((9, DIM), "<f4")])
def test_a_block_of_other_forms_is_refused(tmp_path, shape, kind):
    (path,) = write_examples(tmp_path / "e", source(9), 9)
    rewritten(path, {"0": np.zeros(shape, kind)})
    with pytest.raises(FormatError, match=r"e\.1: a block without the examples of features; expected 9"):
        ExampleArchive(path).numbers(0, 0, 9)


def test_another_file_is_no_archive(tmp_path):
    (tmp_path / "e.1").write_bytes(b"#!MLF!#\n" * 10)
    with pytest.raises(FormatError, match=r"e\.1: begins with b'#!MLF!#\\n'; expected an archive of training examples"):
        reader(tmp_path / "e")


def test_blocks_choose_streams_and_are_checked(tmp_path):
    write_examples(tmp_path / "e", source(9), 9)
    with reader(tmp_path / "e", f"labels=[labelDim={CLASSES}]\nfoo=3") as opened:
        assert opened.dims() == {"labels": CLASSES}
        assert [warning.split(";")[0] for warning in opened.warnings] == ["e.cntk:5: reader.foo is not known here"]
        assert opened.places() == {"labels": "e.cntk:4"}
    with pytest.raises(
        ConfigError, match=r"e\.cntk:4: reader\.label is not a stream of e; expected features or labels;"
    ):
        reader(tmp_path / "e", "label=[]")
    with pytest.raises(ConfigError, match=r"e\.cntk:4: reader\.features\.dim is 6; expected 5, as in e"):
        reader(tmp_path / "e", "features=[dim=6]")
    with reader(tmp_path / "e", "minibatchMode=full") as opened:
        assert not opened.partial


def test_labels_that_are_more_than_a_class_stay_exact(tmp_path):
    """Targets of several bits, and words as numbers."""
    rng = np.random.default_rng(0)
    targets = np.asfortranarray(rng.integers(0, 2, (4, 30)).astype(np.float32))
    words = Indicators(rng.integers(0, 9, (1, 30)), 9)
    minibatch = Minibatch({"targets": targets, "words": words}, {"targets": np.zeros(30, int)}, 30)
    write_examples(tmp_path / "e", [minibatch], 30)
    with reader(tmp_path / "e") as opened:
        found = opened.assemble(0, 30)
        kinds = {stream.name: stream.kind for stream in opened._set.streams}
    assert kinds == {"targets": "float", "words": "class"}
    both = np.concatenate([np.asarray(words), targets]).T.tolist()
    assert sorted(np.concatenate([found.matrices["words"], found.matrices["targets"]]).T.tolist()) == sorted(both)


LAYOUT = SequenceLayout(1, 3, *np.array([[[1], [0], [0]], [[0], [0], [1]], [[0], [0], [0]]], bool))


def _broken(features=None, layout=None, **more):
    features = np.ones((DIM, 3), np.float32) if features is None else features
    return [Minibatch({"features": features, **more}, {}, 3, layout)]


@pytest.mark.parametrize(
    ("minibatches", "message"),
    [
        (_broken(np.full((DIM, 3), np.nan, np.float32)), r"features: value nan in dimension 1; expected finite"),
        (_broken(layout=LAYOUT), "the reader delivers sequences; expected independent frames"),
        (_broken() + _broken(np.ones((DIM + 1, 3), np.float32)), "features: 6 rows, 3 columns; expected 5 rows, 3 col"),
        (_broken(x=np.ones((1, 3), np.float32)) + _broken(), "x: nothing; expected 1 rows, 3 columns"),
        ([], "no examples to write; expected at least one"),
    ],
)
@pytest.mark.parametrize("memory", [1 << 30, 40])
def test_what_cannot_be_written_leaves_nothing(tmp_path, minibatches, message, memory):
    with pytest.raises(ArgonautError, match=message):
        write_examples(tmp_path / "e", minibatches, 6, memory=memory)
    assert list(tmp_path.iterdir()) == []


def test_a_smaller_set_replaces_a_larger_one(tmp_path):
    write_examples(tmp_path / "e", source(60), 60, archives=5)
    write_examples(tmp_path / "e", source(30), 30, archives=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.1", "e.2"]
    with reader(tmp_path / "e") as opened:
        assert opened.num_frames == 30
