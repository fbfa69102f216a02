"""Writing whole files or none, and the account of what a run lost."""

import errno
import gzip
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from readers.common.faults import listed, naming
from readers.common.files import (
    atomic_write,
    held,
    holder,
    require_writable,
    write_compressed,
    write_content,
    write_json,
    write_lines,
)
from readers.common.report import RunReport
from readers.config.options.declaration import OptionFault
from readers.errors import ConfigError, FormatError, GraphError, ManyFaults
from readers.language.grammars.parsing import LineFault


def test_atomic_write_replaces_the_file_and_makes_directories(tmp_path):
    path = tmp_path / "new" / "file.txt"
    for text in ("first", "second"):
        with atomic_write(path, "w") as file:
            file.write(text)
        assert path.read_text() == text
    assert [entry.name for entry in path.parent.iterdir()] == ["file.txt"]


def test_atomic_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path, "w") as file:
        file.write("half of the new")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.txt"]


def test_whole_files(tmp_path):
    write_content(tmp_path / "text", "é\n\udcff")  # a byte of a file name that is not UTF-8
    write_content(tmp_path / "bytes", b"\0\r\n")
    write_lines(tmp_path / "lines", ["a", 1])
    write_json(tmp_path / "value", {"é": [1]}, ensure_ascii=False)
    contents = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert contents == {
        "text": b"\xc3\xa9\n\xff",
        "bytes": b"\0\r\n",
        "lines": b"a\n1\n",
        "value": b'{"\xc3\xa9": [1]}\n',
    }


def test_many_names_are_listed_up_to_a_number():
    assert [listed([]), listed(["a"]), listed(["a", "b"])] == ["", "a", "a, b"]
    assert listed(dict.fromkeys("abcdefghijkl")) == "a, b, c, d, e, f, g, h, i, j and 2 more"
    assert listed(["a", "b", "c"], 1) == "a and 2 more"


def test_a_name_says_whether_a_file_is_compressed(tmp_path):
    for name in ("plain", "packed.gz"):
        write_compressed(tmp_path / name, b"content")
    assert (tmp_path / "plain").read_bytes() == b"content"
    assert gzip.decompress((tmp_path / "packed.gz").read_bytes()) == b"content"


def test_a_place_is_held_by_one_at_a_time_and_left_as_it_was(tmp_path):
    path = tmp_path / "new" / "lock"
    with held(path) as first, held(path) as second:
        assert (first, second) == (True, False)
    assert list(tmp_path.iterdir()) == []
    assert holder(path) == "another process"  # released before it could be read
    with held(path) as again:
        assert again
        (path.parent / "file").touch()
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_a_place_is_held_no_longer_than_the_process_lives(tmp_path):
    path = tmp_path / "lock"
    program = (
        "import sys\nfrom readers.common.files import held\nwith held(sys.argv[1]):\n    print(flush=True)\n    input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        with held(path) as mine:
            assert not mine
            assert holder(path) == f"process {process.pid} on {socket.gethostname()}"
        process.kill()
        process.wait()
    assert path.exists()
    with held(path) as mine:
        assert mine


def raised_by_writing(path) -> str:
    with pytest.raises(OSError) as caught, atomic_write(path, "w") as file:
        file.write("new")
    assert caught.value.filename == os.fspath(path)
    return caught.value.strerror


def test_faults_of_atomic_write_name_the_path_that_was_asked_for(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("old")
    (tmp_path / "directory").mkdir()
    assert raised_by_writing(tmp_path / "directory") == "is a directory; expected a file to write"
    inside = tmp_path / "file" / "a" / "b"
    assert raised_by_writing(inside) == f"cannot be written: {tmp_path / 'file'} is not a directory; expected one"
    monkeypatch.setattr(os, "fsync", lambda number: raise_full())
    assert raised_by_writing(tmp_path / "file") == "cannot be written (No space left on device)"
    assert (tmp_path / "file").read_text() == "old"
    assert names_in(tmp_path) == {"directory", "file"}


def names_in(directory) -> set[str]:
    return {path.name for path in directory.iterdir()}


def raise_full():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_atomic_write_leaves_faults_of_other_files_as_they_are(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, atomic_write(tmp_path / "file"):
        Path(tmp_path / "other").read_bytes()
    assert caught.value.filename == os.fspath(tmp_path / "other")


def test_require_writable_refuses_the_place_of_what_is_read(tmp_path):
    (tmp_path / "list").write_text("a\n")
    (tmp_path / "link").symlink_to(tmp_path / "list")
    for path in ("list", "link"):
        with pytest.raises(OSError, match="is an input and would be overwritten; expected another path"):
            require_writable(tmp_path / path, [None, "", tmp_path / "list"])
    require_writable(tmp_path / "new", [tmp_path / "list"])
    require_writable("/dev/null", ["/dev/null"])


def test_require_writable_refuses_what_atomic_write_would_and_makes_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("old")
    for path in (tmp_path / "file", tmp_path / "new", tmp_path / "a" / "b" / "new"):
        require_writable(path)
    with pytest.raises(IsADirectoryError):
        require_writable(tmp_path)
    with pytest.raises(NotADirectoryError, match="is not a directory"):
        require_writable(tmp_path / "file" / "new")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)  # root may write anywhere
    with pytest.raises(PermissionError, match="is not writable; expected another path"):
        require_writable(tmp_path / "a" / "new")
    assert names_in(tmp_path) == {"file"}


def test_a_pipe_is_written_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    require_writable(pipe)
    with atomic_write(pipe, "w") as file:
        file.write("words")
    assert os.read(reader, 100) == b"words"
    with pytest.raises(RuntimeError), atomic_write(pipe, "w"):
        raise RuntimeError
    os.close(reader)
    assert pipe.is_fifo()
    assert names_in(tmp_path) == {"pipe"}


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full here")
def test_a_full_device_is_named(tmp_path):
    link = tmp_path / "link"  # not the device itself, that a test that fails does no harm
    link.symlink_to("/dev/full")
    assert raised_by_writing(link) == "cannot be written (No space left on device)"
    assert link.is_char_device()


def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "large").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "large" / "file")
    for text in ("first", "second"):
        require_writable(link)
        with atomic_write(link, "w") as file:
            file.write(text)
        assert (tmp_path / "large" / "file").read_text() == text
    assert link.is_symlink()
    assert names_in(tmp_path / "large") == {"file"}


def test_names_that_are_not_utf8_keep_their_bytes(tmp_path):
    name = os.fsdecode(b"caf\xe9.wav")
    report = RunReport("files")
    report.fail(name, "empty")
    report.write(tmp_path / "report")
    assert b"\ncaf\xe9.wav\tfailed\tempty\n" in (tmp_path / "report").read_bytes()


@pytest.mark.parametrize(("num_done", "lost", "status"), [(3, [], 0), (0, [], 0), (2, ["u1"], 1), (0, ["u1"], 2)])
def test_report_exit_status(num_done, lost, status):
    report = RunReport("files", num_done=num_done)
    for name in lost:
        report.fail(name, "broken")
    assert report.exit_status == status


def test_report_file_names_each_loss_with_its_reason(tmp_path):
    report = RunReport("utterances")
    report.done(2)
    report.skip("u1", "no labels")
    report.fail("u2", "truncated")
    report.write(tmp_path / "report.txt")
    assert (tmp_path / "report.txt").read_text() == (
        "# utterances: 2 done, 1 skipped, 1 failed\nu1\tskipped\tno labels\nu2\tfailed\ttruncated\n"
    )


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (GraphError("x"), GraphError),
        (OptionFault("beam", "is -3; expected at least 0"), ConfigError),
        (LineFault(3, "x"), FormatError),
        (ManyFaults("x", ["x", "y"]), FormatError),
    ],
)
def test_faults_begin_with_the_file_whatever_they_are_made_of(fault, kind):
    with pytest.raises(kind, match=f"^a.txt: {fault}$") as caught, naming("a.txt"):
        raise fault
    assert type(caught.value) is kind
