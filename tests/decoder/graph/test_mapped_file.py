"""Mapped files byte by byte: several blocks of checksums, offsets, and damage at every place."""

import os
import struct
import zlib

import numpy as np
import pytest

from decoder.storage import first_opening, mapped_file
from decoder.storage.mapped_file import MappedFormat, NameList, check_lengths, pack_names, unpack_names
from readers.errors import FormatError

KIND = MappedFormat(b"TESTFILE", 3, {"numbers": "<i4", "bytes": "|u1", "none": "<f8"}, "test file", "write one")
BLOCK = 128


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(mapped_file, "BLOCK", BLOCK)


def sections(count):
    return {
        "numbers": np.arange(count, dtype="<i4"),
        "bytes": np.arange(count + 3, dtype=np.uint8),
        "none": np.zeros(0, "<f8"),
    }


@pytest.mark.parametrize("count", [0, 1, 13, 29, 61, 64, 200])
def test_arrays_come_back_whatever_the_number_of_blocks(tmp_path, count):
    path, arrays = tmp_path / "f", sections(count)
    KIND.write(path, -7, arrays)
    data = path.read_bytes()
    end = len(data) - 4 * -(-len(data) // (BLOCK + 4))
    checksums = [zlib.crc32(data[begin : min(begin + BLOCK, end)]) for begin in range(0, end, BLOCK)]
    assert data[end:] == struct.pack(f"<{len(checksums)}I", *checksums)
    assert struct.unpack_from("<8sIIQq", data) == (b"TESTFILE", 3, 3, len(data), -7)
    for i in range(3):
        assert struct.unpack_from("<20s4sQQ", data, 32 + 40 * i)[2] % 64 == 0
    number, found = KIND.read(path)
    assert number == -7
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert not found[name].flags.writeable


def test_the_bytes_before_the_checksums_may_be_whole_blocks(tmp_path):
    """Of sizes that follow each other, one ends exactly with a block; none is read with a block too many or too few."""
    lengths = set()
    for count in range(BLOCK):
        kind = MappedFormat(b"TESTFILE", 3, {"bytes": "|u1"}, "test file", "write one")
        kind.write(tmp_path / "f", 0, {"bytes": np.full(count, 5, np.uint8)})
        np.testing.assert_array_equal(kind.read(tmp_path / "f")[1]["bytes"], np.full(count, 5))
        size = (tmp_path / "f").stat().st_size
        lengths.add((size - 4 * -(-size // (BLOCK + 4))) % BLOCK)
    assert lengths == set(range(BLOCK))


def test_every_flipped_bit_is_noticed_and_named_by_its_block(tmp_path):
    path = tmp_path / "f"
    KIND.write(path, 0, sections(60))
    good = path.read_bytes()
    end = len(good) - 4 * -(-len(good) // (BLOCK + 4))
    assert end > 3 * BLOCK
    for at in range(0, len(good), 5):
        path.write_bytes(good[:at] + bytes([good[at] ^ 16]) + good[at + 1 :])
        with pytest.raises(FormatError) as fault:
            KIND.read(path)
        if 32 + 3 * 40 <= at < end:
            assert f"wrong checksum of the bytes from {at // BLOCK * BLOCK};" in str(fault.value)
        elif at >= end:
            assert f"wrong checksum of the bytes from {(at - end) // 4 * BLOCK};" in str(fault.value)
    path.write_bytes(good[: end - 1] + bytes([good[end - 1] ^ 1]) + good[end:])
    KIND.read(path, verify=False)
    for cut in (0, 8, 31, 40, len(good) - 1):
        path.write_bytes(good[:cut])
        with pytest.raises(FormatError, match=r"expected a test file|bytes; expected"):
            KIND.read(path)
    path.write_bytes(good + b"\0")
    with pytest.raises(FormatError, match=rf"{len(good) + 1} bytes; expected {len(good)}"):
        KIND.read(path)


def table_with(good, index, offset=None, length=None, name=None, kind=None):
    """The file with one entry of its table of sections changed."""
    raw = bytearray(good)
    entry = list(struct.unpack_from("<20s4sQQ", raw, 32 + 40 * index))
    entry = [new if new is not None else old for new, old in zip((name, kind, offset, length), entry)]
    struct.pack_into("<20s4sQQ", raw, 32 + 40 * index, *entry)
    return bytes(raw)


@pytest.mark.parametrize(
    ("index", "changes"),
    [
        (0, {"offset": 128}),  # inside the table
        (0, {"offset": 193}),  # not aligned
        (0, {"length": 1 << 40}),
        (0, {"offset": 1 << 60}),
        (1, {"name": b"numbers"}),  # twice
        (1, {"name": b"other"}),
        (1, {"kind": b"<i4"}),
    ],
)
def test_a_table_that_leads_outside_the_file_is_refused(tmp_path, index, changes):
    path = tmp_path / "f"
    KIND.write(path, 0, sections(60))
    path.write_bytes(table_with(path.read_bytes(), index, **changes))
    with pytest.raises(FormatError, match="section "):
        KIND.read(path, verify=False)


def test_a_section_may_end_with_the_file_and_not_beyond(tmp_path):
    path = tmp_path / "f"
    KIND.write(path, 0, sections(60))
    good = path.read_bytes()
    offset = struct.unpack_from("<20s4sQQ", good, 32 + 40)[2]
    path.write_bytes(table_with(good, 1, length=len(good) - offset))
    assert KIND.read(path, verify=False)[1]["bytes"].shape == (len(good) - offset,)
    path.write_bytes(table_with(good, 1, length=len(good) - offset + 1))
    with pytest.raises(FormatError, match="section 'bytes'"):
        KIND.read(path, verify=False)


def test_names_and_lengths():
    names = ["a", "", "ä b"]
    assert unpack_names(pack_names(names, "f"), "names", "f") == names
    assert unpack_names(pack_names([], "f"), "names", "f") == []
    with pytest.raises(FormatError, match="contains a line break"):
        pack_names(["a\nb"], "f")
    with pytest.raises(FormatError, match="do not end in a line break"):
        unpack_names(np.frombuffer(b"a\nb", np.uint8), "names", "f")
    with pytest.raises(FormatError, match="are not UTF-8"):
        unpack_names(np.frombuffer(b"\xff\n", np.uint8), "names", "f")
    check_lengths({"a": 1, "b": 1, "c": 2}, [("a", "b")], "f")
    with pytest.raises(FormatError, match="2 entries in c; expected 1 as in a"):
        check_lengths({"a": 1, "b": 1, "c": 2}, [("a", "b", "c")], "f")


@pytest.mark.parametrize(
    "names", [[], [""], ["a"], ["a", "", "aa", "ä\r", "a", ""], ["<s>", "</s>", "b a", "a", "\u2028", "\0"]], ids=repr
)
def test_a_name_list_is_the_list(names):
    section = pack_names(names, "x")
    found = NameList(section, "words", "x")
    assert len(found) == len(names)
    assert list(found) == names == found
    assert found == NameList(section, "words", "x")
    assert found != [*names, "more"]
    assert [found[i] for i in range(-len(names), len(names))] == [*names, *names]
    assert found[1:-1] == names[1:-1]
    for name in [*names, "", "a", "\n", "a\nb"]:
        assert (name in found) == (name in names)
        if name in names:
            assert found.index(name) == names.index(name)
    assert 1 not in found
    with pytest.raises(IndexError):
        found[len(names)]
    with pytest.raises(ValueError, match="'missing' is not in the list"):
        found.index("missing")


@pytest.fixture
def comparisons(tmp_path, monkeypatch):
    """What was read when checksums were compared; notes are kept here, also of files that were just written."""
    monkeypatch.setenv("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(first_opening, "SETTLED", -(10**9))
    compared = []
    verify = MappedFormat._verify
    monkeypatch.setattr(MappedFormat, "_verify", lambda *given: (verify(*given), compared.append(given[-1])))
    return compared


def test_checksums_are_compared_when_a_file_is_first_opened(tmp_path, comparisons):
    path = tmp_path / "file"
    KIND.write(path, 0, sections(50))
    os.utime(path, (1e9, 1e9))
    link = tmp_path / "link"
    link.symlink_to(path)
    for name in (path, path, link):
        KIND.read(name)
    assert comparisons == [path]
    KIND.read(path, verify=True)
    assert comparisons == [path] * 2
    with path.open("r+b") as file:
        file.seek(-10, os.SEEK_END)
        file.write(b"\xff\xfe\xfd")
    for time in (1e9, 1e9, 2e9):  # damage that shows neither in the size nor in the time of the content
        os.utime(path, (time, time))
        with pytest.raises(FormatError, match="wrong checksum"):
            KIND.read(path)


def test_a_file_that_was_replaced_while_checksums_were_compared_is_new(tmp_path, comparisons, monkeypatch):
    path = tmp_path / "file"
    damaged = tmp_path / "damaged"
    KIND.write(path, 0, sections(50))
    damaged.write_bytes(path.read_bytes()[:-10] + b"\xff\xfe\xfd" + path.read_bytes()[-7:])
    verify = MappedFormat._verify
    monkeypatch.setattr(MappedFormat, "_verify", lambda *given: (verify(*given), damaged.replace(path)))
    KIND.read(path)
    with pytest.raises(FormatError, match="wrong checksum"):
        KIND.read(path)


def test_a_relative_cache_directory_is_not_used(tmp_path, comparisons, monkeypatch):
    monkeypatch.setenv("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    KIND.write(tmp_path / "file", 0, sections(50))
    KIND.read(tmp_path / "file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "home"]
