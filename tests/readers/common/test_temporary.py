"""Temporary files: names, permissions, and the removal of those that a killed writer left."""

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from readers.common import files, temporary
from readers.common.files import atomic_write
from readers.common.temporary import (
    NAME,
    TemporaryPath,
    directory_of_process,
    remove_abandoned,
    scratch_directory,
    temporary_directory,
)

posix = pytest.mark.skipif(temporary.fcntl is None, reason="no file locks here")


def write(path, text="new"):
    with atomic_write(path, "w") as file:
        file.write(text)


def names_in(directory) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_names_cannot_be_predicted_and_links_in_their_place_are_not_followed(tmp_path, monkeypatch):
    with TemporaryPath(tmp_path / "a") as first, TemporaryPath(tmp_path / "a") as second:
        assert first.path != second.path
        assert all(NAME.fullmatch(one.path.name) for one in (first, second))
    (tmp_path / "victim").write_text("untouched")
    (tmp_path / f".a.{0:016x}.tmp").symlink_to(tmp_path / "victim")
    tokens = iter([f"{0:016x}", f"{1:016x}"])
    monkeypatch.setattr(temporary.secrets, "token_hex", lambda size: next(tokens))
    write(tmp_path / "a")
    assert (tmp_path / "victim").read_text() == "untouched"
    assert (tmp_path / "a").read_text() == "new"
    assert not (tmp_path / "a").is_symlink()


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_a_replaced_file_keeps_its_permissions(tmp_path, mode):
    (tmp_path / "a").touch()
    (tmp_path / "a").chmod(mode)
    write(tmp_path / "a")
    assert (tmp_path / "a").stat().st_mode & 0o777 == mode


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        write(tmp_path / "a")
    finally:
        os.umask(old)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("length", [1, 200, 232, 233, 246, 255])
def test_a_name_may_be_as_long_as_the_file_system_has_it(tmp_path, length):
    write(tmp_path / ("n" * length))
    assert names_in(tmp_path) == {"n" * length}


def test_a_name_that_is_too_long_is_named(tmp_path):
    with pytest.raises(OSError, match="cannot be written") as fault:
        write(tmp_path / ("n" * 256))
    assert fault.value.filename == os.fspath(tmp_path / ("n" * 256))
    assert names_in(tmp_path) == set()


def test_threads_of_a_process_write_the_same_path(tmp_path):
    texts = [str(number) * 100_000 for number in range(8)]
    barrier = threading.Barrier(len(texts))
    faults = []

    def body(text):
        try:
            with atomic_write(tmp_path / "a", "w") as file:
                file.write(text)
                barrier.wait(30)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=body, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert (tmp_path / "a").read_text() in texts
    assert names_in(tmp_path) == {"a"}


WRITER = """import sys
from readers.common.files import atomic_write
with atomic_write(sys.argv[1], "w") as file:
    file.write("half")
    file.flush()
    print(flush=True)
    input()
"""


@posix
def test_what_a_killed_writer_left_goes_and_what_a_living_one_writes_stays(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, tmp_path / "a"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        writer.stdout.readline()
        (left,) = tmp_path.iterdir()
        assert remove_abandoned(tmp_path) == 0
        assert left.read_text() == "half"
        writer.kill()
        writer.wait()
    foreign = [".b.tmp", ".b.123.tmp", "b.0123456789abcdef.tmp", ".b.0123456789abcdeg.tmp"]
    for name in foreign:
        (tmp_path / name).touch()
    write(tmp_path / "c")  # the first file that this process writes here
    assert names_in(tmp_path) == {*foreign, "c"}


HOLDER = """from readers.common.temporary import directory_of_process, scratch_directory
directory_of_process()
with scratch_directory():
    print(flush=True)
    input()
"""


@posix
@pytest.mark.parametrize("make", [scratch_directory, directory_of_process])
def test_directories_of_a_killed_process_go_with_the_next_one(tmp_path, monkeypatch, make):
    monkeypatch.setattr(temporary.tempfile, "tempdir", str(tmp_path))
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as holder:
        holder.stdout.readline()
        assert len(names_in(tmp_path)) == 2
        assert remove_abandoned(tmp_path) == 0
        holder.kill()
        holder.wait()
    with contextlib.ExitStack() as stack:
        other = tmp_path / ".other.0123456789abcdef.tmp"  # of a program that does not lock its files
        other.touch()
        made = make()
        made = made if isinstance(made, Path) else stack.enter_context(made)
        assert names_in(tmp_path) == {made.name, other.name}
    assert made.exists() == (make is directory_of_process)


@posix
def test_a_file_that_was_taken_for_abandoned_is_made_again(tmp_path, monkeypatch):
    lock, calls = temporary.fcntl.flock, []

    def late(descriptor, kind):
        if not calls:
            calls.append(kind)
            assert remove_abandoned(tmp_path) == 1  # another process looks before the lock is there
        lock(descriptor, kind)

    monkeypatch.setattr(temporary, "_cleaned", {(os.fspath(tmp_path), ".")})
    monkeypatch.setattr(temporary.fcntl, "flock", late)
    write(tmp_path / "a")
    assert names_in(tmp_path) == {"a"}


@posix
def test_without_locks_files_are_written_and_none_is_removed(tmp_path, monkeypatch):
    def none(descriptor, kind):
        raise OSError("no locks available")

    (tmp_path / ".b.0123456789abcdef.tmp").touch()
    monkeypatch.setattr(temporary.fcntl, "flock", none)
    write(tmp_path / "a")
    assert names_in(tmp_path) == {"a", ".b.0123456789abcdef.tmp"}


@posix
def test_links_and_pipes_with_such_a_name_are_left_alone(tmp_path):
    (tmp_path / "victim").write_text("untouched")
    (tmp_path / ".b.0123456789abcdef.tmp").symlink_to(tmp_path / "victim")
    os.mkfifo(tmp_path / ".c.0123456789abcdef.tmp")
    assert remove_abandoned(tmp_path) == 0
    assert len(names_in(tmp_path)) == 3


FILLER = """import sys
from pathlib import Path
from readers.common.temporary import temporary_directory
with temporary_directory(Path(sys.argv[1])) as directory:
    (directory / "inside").mkdir()
    (directory / "inside/file").write_text("half")
    print(flush=True)
    input()
"""


@posix
def test_a_directory_that_a_killed_run_left_goes_and_that_of_a_living_one_stays(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", FILLER, tmp_path / "a"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as filler:
        filler.stdout.readline()
        (left,) = tmp_path.iterdir()
        assert NAME.fullmatch(left.name)
        assert remove_abandoned(tmp_path) == 0
        assert (left / "inside/file").read_text() == "half"
        filler.kill()
        filler.wait()
    write(tmp_path / "c")
    assert names_in(tmp_path) == {"c"}


@pytest.mark.parametrize("length", [5, 250])
def test_a_temporary_directory_goes_at_the_end(length, tmp_path):
    with temporary_directory(tmp_path / ("n" * length)) as directory:
        assert directory.parent == tmp_path
        (directory / "file").touch()
    assert names_in(tmp_path) == set()


@posix
def test_a_directory_that_was_taken_for_abandoned_is_made_again(tmp_path, monkeypatch):
    lock, calls = temporary.fcntl.flock, []

    def late(descriptor, kind):
        if not calls:
            calls.append(kind)
            assert remove_abandoned(tmp_path) == 1
        lock(descriptor, kind)

    monkeypatch.setattr(temporary.fcntl, "flock", late)
    with temporary_directory(tmp_path / "a") as directory:
        assert names_in(tmp_path) == {directory.name}


def test_a_directory_that_cannot_be_made_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as fault, temporary_directory(tmp_path / "missing/a"):
        pass
    assert fault.value.filename == os.fspath(tmp_path / "missing/a")


def test_without_locks_a_file_is_closed_before_it_is_removed(tmp_path, monkeypatch):
    """Windows removes only files that nobody has open."""
    calls, close, unlink = [], os.close, Path.unlink
    monkeypatch.setattr(files, "fcntl", None)
    monkeypatch.setattr(temporary, "fcntl", None)
    monkeypatch.setattr(os, "close", lambda descriptor: (calls.append("close"), close(descriptor)))
    monkeypatch.setattr(Path, "unlink", lambda path, missing_ok: (calls.append("remove"), unlink(path)))
    with files.held(tmp_path / "lock"):
        pass
    with TemporaryPath(tmp_path / "a"):
        pass
    assert calls == ["close", "remove"] * 2
    assert names_in(tmp_path) == set()
