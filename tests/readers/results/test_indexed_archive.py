"""Archives of records: round trips, damage, resumed writers, the bytes by hand."""

import json
import os
import signal
import struct
import subprocess
import sys
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from readers.errors import ConfigError, FormatError
from readers.results.indexed_archive import TYPES, ArchiveWriter, IndexedArchive

JSON = st.dictionaries(st.text(), st.one_of(st.none(), st.integers(), st.text(), st.lists(st.booleans())), max_size=3)
ARRAY = st.sampled_from(TYPES).flatmap(lambda kind: arrays(kind, array_shapes(max_dims=4, max_side=4, min_side=0)))
RECORDS = st.dictionaries(st.text(), st.tuples(st.dictionaries(st.text(), ARRAY, max_size=3), JSON), max_size=4)
TWO = {"b/1": ({"frames": np.arange(5, dtype=np.int32)}, {"speaker": "anna"}), "a": ({}, {})}


def write(path, records=TWO, kind="counts", metadata=None):
    with ArchiveWriter(path, kind, metadata) as archive:
        for name, (values, described) in records.items():
            if name not in archive.names:
                archive.add(name, values, described)
    return path


def read(path, kind="counts"):
    archive = IndexedArchive(path, kind)
    return {name: archive.record(name) for name in archive.names}


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(records=RECORDS, metadata=JSON)
def test_records_survive_the_file(tmp_path_factory, records, metadata):
    path = write(tmp_path_factory.mktemp("archive") / "x", records, metadata=metadata)
    found = read(path)
    assert IndexedArchive(path, "counts").metadata == metadata
    assert list(found) == list(records)
    for name, (values, described) in records.items():
        assert found[name].metadata == described == IndexedArchive(path, "counts").metadata_of(name)
        assert list(found[name].arrays) == list(values)
        for key, array in values.items():
            assert found[name].arrays[key].dtype == array.dtype
            np.testing.assert_array_equal(found[name].arrays[key], array)
    assert [one.name for one in path.parent.iterdir()] == ["x"]


def test_arrays_in_any_memory_order_and_byte_order(tmp_path):
    array = np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))
    path = write(tmp_path / "x", {"u": ({"a": array}, {})})
    np.testing.assert_array_equal(read(path)["u"].arrays["a"], array)


def framed(mark, value):
    text = json.dumps(value, separators=(",", ":")).encode()
    return mark + struct.pack("<II", len(text), zlib.crc32(text)) + text


def padded(content):
    return content + bytes(-len(content) % 64)


def test_the_bytes_by_hand(tmp_path):
    """Laid out from the module's description."""
    text = b'{"kind":"counts","metadata":{"v":1}}'
    start = padded(b"ARGOREC\n" + struct.pack("<III", 1, len(text), zlib.crc32(text)) + text)
    payload = padded(np.array([1, 2], "<i4").tobytes())
    described = {"n": ["<i4", [2], 0]}
    record = {"name": "u", "metadata": {}, "arrays": described, "bytes": 64, "checksum": zlib.crc32(payload)}
    body = padded(framed(b"RECD", record)) + payload
    end = framed(b"INDX", {"u": len(start)}) + struct.pack("<Q", len(start) + len(body)) + b"ARGOREC\n"
    path = write(tmp_path / "x", {"u": ({"n": np.array([1, 2], np.int32)}, {})}, metadata={"v": 1})
    assert path.read_bytes() == start + body + end


def test_copies_of_utterances_are_found_by_the_end_of_their_names(tmp_path):
    records = {name: ({}, {}) for name in ("b/1", "a", "x/2", "y/2", "2/a/3")}
    archive = IndexedArchive(write(tmp_path / "x", records), "counts")
    found = {"a": "a", "warp92/a": "a", "x/b/1": "b/1", "b/1": "b/1", "1": "b/1", "warp92/1": "b/1", "3": "2/a/3"}
    assert {key: archive.find(key) for key in found} == found
    assert [archive.find(key) for key in ("b", "z/2", "2", "", "a/")] == [None] * 5
    assert archive.find("y/2") == "y/2"
    assert archive.place("b/1") < archive.place("a")
    assert "a" in archive
    assert "z" not in archive
    with pytest.raises(KeyError):
        archive.record("z")


@pytest.mark.slow
def test_every_truncation_is_one_line(tmp_path):
    content = write(tmp_path / "x").read_bytes()
    for length in range(len(content)):
        (tmp_path / "x").write_bytes(content[:length])
        with pytest.raises(FormatError, match=r"^\S*x: .*expected .*") as caught:
            read(tmp_path / "x")
        assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_file_that_is_cut_while_it_is_open_is_one_line(tmp_path):
    path = tmp_path / "x"
    with ArchiveWriter(path, "tests") as writer:
        writer.add("a", {"one": np.zeros(100_000, np.float32)})
        writer.add("b", {"one": np.zeros(100_000, np.float32)})
    archive = IndexedArchive(path, "tests")
    with path.open("r+b") as file:
        file.truncate(1000)
    for read in (archive.record, archive.metadata_of):
        with pytest.raises(
            FormatError, match=r"x: record 'b': the file was cut to 1000 bytes while it was read; expec"
        ):
            read("b")


def test_every_changed_byte_is_noticed_or_changes_nothing(tmp_path):
    content = write(tmp_path / "x").read_bytes()
    silent = 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x41
        (tmp_path / "x").write_bytes(damaged)
        try:
            found = read(tmp_path / "x")
        except FormatError:
            continue
        silent += 1
        assert content[place] == 0  # padding
        assert found["b/1"].arrays["frames"].tolist() == [0, 1, 2, 3, 4]
    assert silent < len(content) / 2


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        (["<i4", [1 << 40], 0], "of 64 bytes"),
        (["<i4", [-1], 0], "shape"),
        (["<i4", [1 << 62, 1 << 62], 0], "of 64 bytes"),
        (["<i4", [1], 32], "at 32"),
        (["<i4", [1], 64], "of 64 bytes"),
        (["|O", [1], 0], "array of"),
        (["<i4", 7, 0], "array of"),
        (["<i4", [True], 0], "shape"),
        (["|b1", [4], 0], "truth"),
        (["<i4"], "missing"),
        (7, "expected"),
    ],
)
def test_arrays_that_cannot_be_are_refused(tmp_path, described, reason):
    text = b'{"kind":"counts","metadata":{}}'
    start = padded(b"ARGOREC\n" + struct.pack("<III", 1, len(text), zlib.crc32(text)) + text)
    payload = padded(b"\2\2\2\2")
    record = {"name": "u", "metadata": {}, "arrays": {"n": described}, "bytes": 64, "checksum": zlib.crc32(payload)}
    body = padded(framed(b"RECD", record)) + payload
    end = framed(b"INDX", {"u": len(start)}) + struct.pack("<Q", len(start) + len(body)) + b"ARGOREC\n"
    (tmp_path / "x").write_bytes(start + body + end)
    with pytest.raises(FormatError, match=f"x: record 'u': .*{reason}"):
        read(tmp_path / "x")


def test_other_files_are_refused(tmp_path):
    path = write(tmp_path / "x")
    with pytest.raises(FormatError, match="archive of counts; expected an archive of lattices"):
        IndexedArchive(path, "lattices")
    path.write_bytes(b"hello, this is text of some length\n")
    with pytest.raises(FormatError, match="begins with b'hello, t'; expected an archive of counts"):
        IndexedArchive(path, "counts")
    with pytest.raises(FormatError, match="a directory"):
        IndexedArchive(tmp_path, "counts") if os.name == "nt" else IndexedArchive("/dev/null", "counts")
    with pytest.raises(OSError, match="missing"):
        IndexedArchive(tmp_path / "missing", "counts")


def test_a_writer_that_raises_keeps_its_records_and_the_old_archive(tmp_path):
    path = write(tmp_path / "x", {"old": ({}, {})})
    with pytest.raises(RuntimeError), ArchiveWriter(path, "counts") as archive:
        archive.add("a", {})
        raise RuntimeError
    assert IndexedArchive(path, "counts").names == ["old"]
    with ArchiveWriter(path, "counts") as archive:
        assert archive.names == ["a"]
        with pytest.raises(ValueError, match="already"):
            archive.add("a", {})
    assert IndexedArchive(path, "counts").names == ["a"]


def test_other_metadata_begin_again(tmp_path):
    with pytest.raises(RuntimeError), ArchiveWriter(tmp_path / "x", "counts", {"v": 1}) as archive:
        archive.add("a", {})
        raise RuntimeError
    with ArchiveWriter(tmp_path / "x", "counts", {"v": 2}) as archive:
        assert archive.names == []


def test_a_resumed_archive_has_the_same_bytes_wherever_the_writer_was_stopped(tmp_path):
    whole = write(tmp_path / "x").read_bytes()
    for length in range(0, len(whole), 7):
        (tmp_path / "y.part").write_bytes(whole[:length])
        assert write(tmp_path / "y").read_bytes() == whole


KILLED = """
import os, signal, sys
import numpy as np
from readers.results.indexed_archive import ArchiveWriter
with ArchiveWriter(sys.argv[1], "counts") as archive:
    archive.add("b/1", {"frames": np.arange(5, dtype=np.int32)}, {"speaker": "anna"})
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
def test_a_killed_writer_is_resumed(tmp_path):
    ended = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "x"], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not (tmp_path / "x").exists()
    with ArchiveWriter(tmp_path / "x", "counts") as archive:
        assert archive.names == ["b/1"]
        archive.add("a", {})
    assert (tmp_path / "x").read_bytes() == write(tmp_path / "y").read_bytes()


def test_two_writers_of_one_archive_are_refused(tmp_path):
    with (
        ArchiveWriter(tmp_path / "x", "counts"),
        pytest.raises(ConfigError, match="being written by process"),
        ArchiveWriter(tmp_path / "x", "counts"),
    ):
        pass


def test_a_writer_that_does_not_resume_leaves_nothing_and_spares_that_of_another(tmp_path):
    whole = write(tmp_path / "y").read_bytes()
    with pytest.raises(RuntimeError), ArchiveWriter(tmp_path / "x", "counts", resume=False) as archive:
        archive.add("a", {})
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["y"]
    with pytest.raises(RuntimeError), ArchiveWriter(tmp_path / "x", "counts") as archive:
        archive.add("a", {})
        raise RuntimeError
    with ArchiveWriter(tmp_path / "x", "counts", resume=False) as archive:
        assert archive.names == []
        with pytest.raises(ConfigError), ArchiveWriter(tmp_path / "x", "counts", resume=False):
            pass
        for name, (values, described) in TWO.items():
            archive.add(name, values, described)
    assert (tmp_path / "x").read_bytes() == whole


def test_the_target_of_a_link_is_replaced(tmp_path):
    (tmp_path / "directory").mkdir()
    (tmp_path / "x").symlink_to(tmp_path / "directory" / "y")
    write(tmp_path / "x")
    assert (tmp_path / "x").is_symlink()
    assert [path.name for path in (tmp_path / "directory").iterdir()] == ["y"]


@pytest.mark.parametrize("array", [np.array(["a"]), np.float64(3), np.zeros((1,) * 5), np.array([1j])])
def test_arrays_that_cannot_be_stored(tmp_path, array):
    with pytest.raises(ValueError, match="expected one of"), ArchiveWriter(tmp_path / "x", "counts") as archive:
        archive.add("a", {"v": array})


def test_short_writes_are_continued(tmp_path):
    whole = write(tmp_path / "x").read_bytes()
    with ArchiveWriter(tmp_path / "y", "counts") as archive:
        file = archive._file
        archive._file = SimpleNamespace(
            write=lambda content: file.write(content[:7]), tell=file.tell, fileno=file.fileno, close=file.close
        )
        for name, (values, described) in TWO.items():
            archive.add(name, values, described)
    assert (tmp_path / "y").read_bytes() == whole
