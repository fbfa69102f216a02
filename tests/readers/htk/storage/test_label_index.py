"""Large label files: an index of entries, compared with reading into memory."""

import gzip
import os
import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.common import names as names_module
from readers.errors import FormatError
from readers.htk import mlf as mlf_module
from readers.htk.mlf import MLF, read_mlf, wanted_keys
from readers.htk.storage import label_index
from readers.htk.storage.label_kernels import END, FULL, NOT_CLOSED, ODD_NAME, find_dot, index_entries

HEADER = "#!MLF!#\n"
LINES = (
    "",
    ".",
    "a",
    '"a.lab"',
    '"*/b.lab"',
    '"x/b.lab"',
    '"*/c*.lab"',
    '"*.lab"',
    '"x.l?b"',
    '"a\\040b.lab"',
    '"a\\052.lab"',
    '"x\\b.lab"',
    '"é.lab"\u00a0',
    '"a.lab" x',
    '"d" -> "e"',
    "0 10 s",
    "10 0 s",
    "0 1e1 s -1.5",
    "0 1234567890123456 s",
    "10",
    "-5 w",
    "0 10 s -1.5 p -2 w",
    "///",
    "'q",
    '"q w" 3',
    "é",
    "\u00a0",
    " \t.",
    ".\u3000",
    "\u2003\x85.\x1c",
    "\u2003///",
    "\u00a0#!MLF!#",
    "#!MLF!#",
)


def outcome(path, keys, tolerant, names):
    """Everything that a caller can see of an MLF, or the message of the fault."""
    faults = []
    try:
        found = read_mlf(path, keys, on_fault=faults.append if tolerant else None)
    except FormatError as fault:
        return str(fault)
    looked_up = [found.lookup(name) for name in names]
    places = [found.where(key) for key in found]
    return (
        dict(found.items()),
        list(found),
        len(found),
        looked_up,
        places,
        found.patterns,
        found.faulty,
        [*map(str, faults)],
        [found.expected_entry(name) for name in names],
    )


@settings(max_examples=150, deadline=None)
@given(
    lines=st.lists(st.sampled_from(LINES), max_size=14),
    end=st.sampled_from(["\n", "", "\n.\n"]),
    keys=st.sampled_from([None, {"a", "x/b"}, set()]),
    tolerant=st.booleans(),
    block=st.sampled_from([8, 40, 1 << 20]),
    collide=st.booleans(),
    header=st.sampled_from([HEADER] * 9 + ["\u00a0#!MLF!# \n", "RIFF\0\0\0\0WAVEfmt \n", "é" * 50 + "\n"]),
)
def test_a_large_file_is_read_like_a_small_one(tmp_path_factory, lines, end, keys, tolerant, block, collide, header):
    path = tmp_path_factory.mktemp("mlf") / "a.mlf"
    path.write_text(header + "\n".join(lines) + end)
    names = ("a", "x/b", "y/b.fb", "c1", "a b", "x\\b", "é", "other")
    with pytest.MonkeyPatch.context() as patch:
        expected = outcome(path, keys, tolerant, names)
        if keys is None and collide:
            patch.setattr(names_module, "hash", lambda name: len(name) % 2, raising=False)
        patch.setattr(mlf_module, "LARGE", -1)
        patch.setattr(label_index, "BLOCK", block)
        patch.setattr(label_index, "ENTRIES_AT_ONCE", 2)
        assert outcome(path, keys, tolerant, names) == expected


def plain_entries(text):
    """The entries of a text without faults, by splitting it: (name, label lines)."""
    found, lines = [], iter(text.split("\n"))
    for line in lines:
        if line.strip().startswith('"'):
            body = []
            for label in lines:
                if label.strip() == ".":
                    break
                body.append(label)
            found.append((line.strip()[1:-1], body))
    return found


def test_the_kernels_find_what_splitting_finds():
    text = '#!MLF!#\n\n"*/a.lab"\n0 5 x\n5 9 y -1 z\n.\n  "b"\t\n . \n"c"\nword\n///\n9 0 x\n.\n'
    raw = np.frombuffer(text.encode(), np.uint8)
    names, bodies = np.zeros((9, 2), np.int64), np.zeros((9, 2), np.int64)
    lines, plain = np.zeros(9, np.int64), np.zeros(9, bool)
    for run in (index_entries, index_entries.py_func):
        assert run(raw, 0, 0, names, bodies, lines, plain) == (3, len(raw), 13, END)
        found = [(text[a:b], text[c:d].split("\n")[:-1]) for (a, b), (c, d) in zip(names[:3], bodies[:3])]
        assert found == plain_entries(text)
        assert (lines[:3].tolist(), plain[:3].tolist()) == ([3, 7, 9], [True] * 3)
    assert index_entries(raw, 0, 0, names[:1], bodies, lines, plain)[3] == FULL
    assert index_entries(raw[:20], 0, 0, names, bodies, lines, plain) == (0, 9, 2, NOT_CLOSED)
    odd = np.frombuffer(b'"a"\n.\n"b"c"\n.\n', np.uint8)
    assert index_entries(odd, 0, 0, names, bodies, lines, plain) == (1, 6, 2, ODD_NAME)


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("w", True),
        ("0 5 s", True),
        ("5 0 s", False),
        ("1.5 w", False),
        ("s 1 2", True),
        ("0 x y", False),
        ("7 8", True),
    ],
)
def test_lines_that_may_be_faulty_are_left_to_the_parser(line, plain):
    assert find_dot(np.frombuffer(f"{line}\n.\n".encode(), np.uint8), 0)[3] == plain


@pytest.mark.parametrize("form", ["gzip", "windows"])
def test_text_that_cannot_be_read_in_parts_is_copied(tmp_path, monkeypatch, form):
    text = HEADER + '"*/a.lab"\n0 10 x\n.\n"b.lab"\ny\n.\n'
    path = tmp_path / "a.mlf"
    path.write_bytes(gzip.compress(text.encode()) if form == "gzip" else text.replace("\n", "\r\n").encode())
    monkeypatch.setattr(mlf_module, "LARGE", -1)
    found = read_mlf(path)
    assert [label.name for label in found.lookup("any/a")] == ["x"]
    again = pickle.loads(pickle.dumps(found))
    assert dict(again.items()) == dict(found.items())
    assert again.lookup("any/a") == found.lookup("any/a")


@pytest.mark.parametrize("change", ["", HEADER + '"a"\n0 99 y\n.\n'])
def test_a_file_that_changes_is_reported(tmp_path, monkeypatch, change):
    monkeypatch.setattr(mlf_module, "LARGE", -1)
    path = tmp_path / "a.mlf"
    path.write_text(HEADER + '"a"\n0 10 x\n.\n')
    os.utime(path, ns=(0, 0))
    found = read_mlf(path)
    path.write_text(change)
    with pytest.raises(FormatError, match=r"a.mlf: the file has changed while it was used; expected no change"):
        found.lookup("a")


def test_a_file_that_is_replaced_or_deleted_is_still_read(tmp_path, monkeypatch):
    monkeypatch.setattr(mlf_module, "LARGE", -1)
    path = tmp_path / "a.mlf"
    path.write_text(HEADER + '"a"\n0 10 x\n.\n')
    found = read_mlf(path)
    (tmp_path / "b.mlf").write_text(HEADER)
    (tmp_path / "b.mlf").replace(path)
    path.unlink()
    assert [label.name for label in found["a"]] == ["x"]


def test_a_pipe_after_a_large_file_is_read_once(tmp_path, monkeypatch):
    monkeypatch.setattr(mlf_module, "LARGE", 10)
    (tmp_path / "a.mlf").write_text(HEADER + '"a"\n0 10 x\n.\n')
    found = read_mlf(tmp_path / "a.mlf")
    end, begin = os.pipe()
    os.write(begin, (HEADER + '"b"\n0 10 y\n.\n').encode())
    os.close(begin)
    read_mlf(f"/dev/fd/{end}", into=found)
    os.close(end)
    assert {key: labels[0].name for key, labels in found.items()} == {"a": "x", "b": "y"}


def test_copies_of_many_files_need_few_open_files(tmp_path, monkeypatch):
    monkeypatch.setattr(mlf_module, "LARGE", -1)
    monkeypatch.setattr(label_index, "MOST_OPEN", 4)
    found, before = MLF(), len([*Path("/dev/fd").iterdir()])
    for i in range(20):
        (tmp_path / f"{i}.gz").write_bytes(gzip.compress(f'{HEADER}"{i}"\n0 10 x{i}\n.\n'.encode()))
        (tmp_path / f"p{i}").write_text(f'{HEADER}"p{i}"\n0 10 y{i}\n.\n')
        read_mlf(tmp_path / f"{i}.gz", into=found)
        read_mlf(tmp_path / f"p{i}", into=found)
    again = pickle.loads(pickle.dumps(found))
    assert len([*Path("/dev/fd").iterdir()]) <= before + 1 + 2 * 4
    for mapping in (found, again):
        assert [mapping[f"{i}"][0].name for i in range(20)] == [f"x{i}" for i in range(20)]
        assert [mapping[f"p{i}"][0].name for i in range(20)] == [f"y{i}" for i in range(20)]


def test_processes_that_share_a_file_do_not_move_its_position(tmp_path, monkeypatch):
    monkeypatch.setattr(mlf_module, "LARGE", -1)
    (tmp_path / "a.mlf").write_text(HEADER + '"a"\n0 10 x\n.\n"b"\n0 10 y\n.\n')
    found = read_mlf(tmp_path / "a.mlf")
    file = found._large._texts[0][0]._file
    file.seek(3)
    assert [found[key][0].name for key in "ba"] == ["y", "x"]
    assert file.tell() == 3


@pytest.mark.parametrize("most_open", [0, 1, 64])
def test_files_are_large_together(tmp_path, monkeypatch, most_open):
    monkeypatch.setattr(mlf_module, "LARGE", 40)
    monkeypatch.setattr(label_index, "MOST_OPEN", most_open)
    found = MLF()
    for name in "abcd":
        (tmp_path / name).write_text(f'{HEADER}"{name}"\n0 10 x\n.\n')
        read_mlf(tmp_path / name, into=found)
    assert list(found) == list("abcd")
    assert [[label.name for label in found[name]] for name in "abcd"] == [["x"]] * 4
    assert sum(text._file is not None for text, _ in found._large._texts) == min(most_open, 3)
    assert [found.where(name) for name in "ad"] == [f"{tmp_path / name}:2" for name in "ad"]
    (tmp_path / "e").write_text(f'{HEADER}"a"\n.\n')
    with pytest.raises(FormatError, match=r"e:2: entry 'a' is already at .*/a:2; expected each utterance once"):
        read_mlf(tmp_path / "e", into=found)


@pytest.mark.parametrize("wanted", [False, True])
def test_an_utterance_takes_little_memory_whatever_its_labels(tmp_path, monkeypatch, wanted):
    monkeypatch.setattr(mlf_module, "LARGE", -1)
    count = 20_000
    body = "".join(f"{k}00000 {k + 1}00000 state{k} -1.5\n" for k in range(20))
    (tmp_path / "a.mlf").write_text(HEADER + "".join(f'"*/utterance{i:09}.lab"\n{body}.\n' for i in range(count)))
    keys = wanted_keys(f"utterance{i:09}" for i in range(count)) if wanted else None
    read_mlf(tmp_path / "a.mlf", keys)  # imports
    tracemalloc.start()
    try:
        found = read_mlf(tmp_path / "a.mlf", keys)
        assert len(found.lookup("utterance000012345")) == 20
        assert tracemalloc.get_traced_memory()[0] < 64 * count
    finally:
        tracemalloc.stop()
