"""The binary cache: as good as the text it was made from, made again when that changes, and harmless when damaged."""

import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from readers.config.config import Config
from readers.errors import ArgonautError, ConfigError, FormatError
from readers.minibatches.base import open_reader
from readers.sources.records.binary_reader import BinaryReader
from readers.sources.records.record_cache import CachedSource, CachedStream, open_cache, write_cache
from readers.sources.records.uci_reader import UCIFastReader

COUNT = 40
BLOCKS = "features=[dim=2]\nlabels=[start=2;labelMappingFile=DIR/map.txt]\nclass=[start=3;labelDim=5]"


@pytest.fixture
def data(tmp_path):
    lines = [f"{i} {-i / 2} {'abc'[i * i % 3]} {i % 4}" for i in range(COUNT)]
    (tmp_path / "data.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def config(directory, text: str = "", blocks: str = BLOCKS) -> Config:
    text = f"reader=[\nfile={directory}/data.txt\n{text}\n{blocks.replace('DIR', str(directory))}\n]"
    return Config.from_text(text, "u.cntk").block("reader")


def cached(directory, text: str = "", blocks: str = BLOCKS) -> Config:
    return config(directory, f"writerType=BinaryWriter\nwfile={directory}/cache.bin\n{text}", blocks)


def same(one, other) -> None:
    assert one.dims() == other.dims()
    for ours, theirs in zip(one.minibatches(1, 7, 60), other.minibatches(1, 7, 60), strict=True):
        assert ours.num_frames == theirs.num_frames
        for name, matrix in theirs.matrices.items():
            np.testing.assert_array_equal(ours.matrices[name], matrix)
            assert (ours.matrices[name].flags.f_contiguous, ours.matrices[name].flags.writeable) == (True, True)
            assert type(ours.matrices[name]) is np.ndarray
        for name, classes in theirs.classes.items():
            np.testing.assert_array_equal(ours.classes[name], classes)


@pytest.mark.parametrize("order", ["", "randomize=none", "randomize=10", "maxFramesInMemory=9"])
def test_cache_gives_what_the_text_gives(data, order):
    first = UCIFastReader(cached(data, order), 3)
    assert (data / "map.txt").read_text() == "a\nb\n"
    (data / "map.txt").unlink()
    second = UCIFastReader(cached(data, order), 3)  # from the cache, the map too
    assert (data / "map.txt").read_text() == "a\nb\n"
    same(first, second)
    if "Memory" not in order:  # the order of mapped files is made in pieces then
        same(second, UCIFastReader(config(data, order), 3))
    binary = open_reader(config(data, f"readerType=BinaryReader\nfile={data}/cache.bin\n{order}", ""), 3)
    assert isinstance(binary, BinaryReader)
    same(binary, second)
    assert sorted(m.matrices["features"][0].item() for m in binary.minibatches(0, 1)) == list(range(COUNT))


def test_text_is_not_read_again(data):
    UCIFastReader(cached(data))
    stat = (data / "data.txt").stat()
    (data / "data.txt").write_bytes(b"x" * stat.st_size)
    os.utime(data / "data.txt", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert UCIFastReader(cached(data)).num_frames == COUNT


@pytest.mark.parametrize(
    ("change", "blocks", "text", "warning"),
    [
        (lambda d: (d / "data.txt").open("a").write("7 8 a 0\n"), BLOCKS, "", "data.txt has changed since"),
        (lambda d: os.utime(d / "data.txt", ns=(1, 1)), BLOCKS, "", "data.txt has changed since"),
        (lambda d: (d / "map.txt").write_text("b\na\n"), BLOCKS, "", "the labels of labels have changed since"),
        (lambda d: None, BLOCKS.replace("dim=2", "dim=1"), "", "features differs from the cached stream"),
        (lambda d: None, BLOCKS.replace("labelDim=5", "labelDim=4"), "", "the labels of class have changed since"),
        (lambda d: None, BLOCKS, "customDelimiter=|", "customDelimiter or customDecimalPoint has changed"),
        (lambda d: None, BLOCKS + "\nmore=[dim=1]", "", "more differs from the cached stream"),
        (lambda d: _cut(d / "cache.bin"), BLOCKS, "", "remove the cache"),
    ],
)
def test_stale_cache_is_made_again(data, change, blocks, text, warning):
    UCIFastReader(cached(data))
    change(data)
    written = UCIFastReader(cached(data, text, blocks), write=True)
    assert all("cache.bin: not used: " in line for line in written.warnings)  # labels do not matter there
    again = UCIFastReader(cached(data, text, blocks))
    assert len(again.warnings) == 1
    assert f"{data}/cache.bin: made again: " in again.warnings[0]
    assert warning in again.warnings[0]
    same(again, UCIFastReader(config(data, text, blocks)))
    assert UCIFastReader(cached(data, text, blocks)).warnings == []


def _cut(path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def test_streams_may_be_chosen_from_a_cache(data):
    UCIFastReader(cached(data))
    assert UCIFastReader(cached(data, "", "features=[dim=2]")).warnings == []
    written = UCIFastReader(cached(data), write=True)
    assert (written.warnings, written.streams) == ([], ["features"])
    assert BinaryReader(_binary(data, "class=[labelDim=5]")).dims() == {"class": 5}
    assert BinaryReader(_binary(data, ""), write=True).streams == ["features"]


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ("feature=[dim=2]", r"u.cntk:5: reader.feature is not a stream of .*did you mean features"),
        ("features=[dim=3]", r"u.cntk:5: reader.features.dim is 3; expected 2, as in .*cache.bin"),
        ("class=[labelDim=3]", r"u.cntk:5: reader.class.labelDim is 3; expected 5"),
        ("labels=[labelMappingFile=DIR/other]", r"u.cntk:5: .*other: not the labels of .*cache.bin; expected the same"),
    ],
)
def test_faults_of_binary_reader(data, blocks, message):
    UCIFastReader(cached(data))
    (data / "other").write_text("b\na\n")
    with pytest.raises(ConfigError, match=message):
        BinaryReader(_binary(data, blocks))


def _binary(directory, blocks: str) -> Config:
    text = (
        f"reader=[\nreaderType=BinaryReader\nfile={directory}/cache.bin\n\n{blocks.replace('DIR', str(directory))}\n]"
    )
    return Config.from_text(text, "u.cntk").block("reader")


def test_file_that_is_no_cache_is_left_alone(data):
    (data / "cache.bin").write_text("my thesis")
    with pytest.raises(ConfigError, match=r"cache.bin: is not a record cache; expected one, or no file at wfile"):
        UCIFastReader(cached(data))
    with pytest.raises(FormatError, match=r"cache.bin: is not a record cache"):
        BinaryReader(_binary(data, ""))
    assert (data / "cache.bin").read_text() == "my thesis"
    (data / "cache.bin").unlink()
    with pytest.raises(ConfigError, match=r"u.cntk:3: reader.file: .*cache.bin: No such file"):
        BinaryReader(_binary(data, ""))


def test_bad_text_leaves_no_cache(data):
    with (data / "data.txt").open("a") as file:
        file.write("1 x a 0\n")
    with pytest.raises(FormatError, match=r"data.txt:41: 'x' in column 1"):
        UCIFastReader(cached(data))
    assert not (data / "cache.bin").exists()
    assert not (data / "map.txt").exists()


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 99), dims=st.lists(st.integers(0, 4), min_size=1, max_size=4), cuts=st.integers(1, 4))
def test_round_trip(tmp_path, seed, dims, cuts):
    rng = np.random.default_rng(seed)
    total = int(rng.integers(1, 30))
    streams, values = [], {}
    for index, dim in enumerate(dims):
        name = f"s{index}é"
        if dim:
            values[name] = rng.standard_normal((total, dim)).astype(np.float32)
            streams.append(CachedStream(name, 0, index, dim))
        else:
            values[name] = rng.integers(0, 3, total).astype(np.int32)
            streams.append(CachedStream(name, 0, index, 1, 3, ("x", "y y", "é")))
    bounds = sorted({0, total, *rng.integers(0, total + 1, cuts).tolist()})
    blocks = [{name: one[a:b] for name, one in values.items()} for a, b in pairwise(bounds)]
    write_cache(tmp_path / "c", blocks, streams, [CachedSource("f", 1, 2)], {"a": "b"})
    cache = open_cache(tmp_path / "c")
    assert (cache.streams, cache.sources, cache.settings) == (tuple(streams), (CachedSource("f", 1, 2),), {"a": "b"})
    for name, one in values.items():
        np.testing.assert_array_equal(cache.columns[name], one)


@settings(deadline=None, max_examples=70, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_one_line_or_harmless(tmp_path, data):
    values = {"x": np.ones((5, 2), np.float32), "y": np.zeros(5, np.int32)}
    streams = [CachedStream("x", 0, 0, 2), CachedStream("y", 0, 2, 1, 2, ("a", "b"))]
    path = tmp_path / "c"
    write_cache(path, [values], streams, [CachedSource("f", 1, 2)], {})
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw)
    message = ""
    try:
        reader = BinaryReader(_binary_at(path))
        for minibatch in reader.minibatches(0, 2):
            assert all(classes.max() < 2 for classes in minibatch.classes.values() if "y" in minibatch.classes)
    except ArgonautError as fault:
        message = str(fault)
    assert "\n" not in message
    assert message.startswith(str(path)) or not message


def _binary_at(path) -> Config:
    return Config.from_text(f"reader=[\nfile={path}\n]", "u.cntk").block("reader")
