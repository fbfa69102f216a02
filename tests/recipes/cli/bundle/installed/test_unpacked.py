"""The directories to which compact bundles are unpacked: who uses them, and when they are removed."""

import multiprocessing
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from decoder.recognizer.bundle import Bundle
from decoder.search import table_file
from decoder.storage.unpacked import UNUSED, hold, remove_unused
from readers.errors import FormatError

pytestmark = [
    pytest.mark.usefixtures("cache"),
    pytest.mark.skipif(sys.platform == "win32", reason="needs locks and forks"),
]
LONG_AGO = time.time() - UNUSED - 3600


def old_directory(path):
    """Make a directory with a file, which was last used long ago."""
    path.mkdir(parents=True)
    (path / "graph.dg").write_bytes(b"graph")
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def test_to_unpack_a_bundle_removes_those_that_were_not_opened_for_30_days(compact, cache):
    old_directory(cache / ("0" * 32))
    recent = old_directory(cache / ("1" * 32))
    os.utime(recent, (LONG_AGO + 7200, LONG_AGO + 7200))
    other = old_directory(cache / "other")
    (cache / ("2" * 32)).symlink_to(other)
    Bundle.open(compact)
    (directory,) = (path for path in cache.iterdir() if (path / "bundle.json").exists())
    assert set(cache.iterdir()) == {directory, recent, other, cache / ("2" * 32)}
    os.utime(directory, (LONG_AGO, LONG_AGO))
    Bundle.open(compact)
    assert directory.stat().st_mtime > LONG_AGO + 3600


def _hold_until(directory, is_held, may_end):
    hold(directory)
    os.utime(directory, (LONG_AGO, LONG_AGO))
    is_held.set()
    may_end.wait(60)


def test_a_directory_that_a_process_holds_is_not_removed(cache):
    directory = old_directory(cache / ("0" * 32))
    context = multiprocessing.get_context("fork")
    is_held = context.Event()
    may_end = context.Event()
    process = context.Process(target=_hold_until, args=(directory, is_held, may_end))
    process.start()
    assert is_held.wait(60)
    remove_unused(cache)
    assert (directory / "graph.dg").exists()
    may_end.set()
    process.join(60)
    remove_unused(cache)
    assert list(cache.iterdir()) == []


def test_a_fork_that_ends_leaves_the_directory_of_its_parent():
    """As do the workers of a web server, which end as programs do."""
    lines = (
        "import os, sys",
        "from readers.common.temporary import directory_of_process",
        "directory = directory_of_process()",
        "child = os.fork()",
        "if child == 0: sys.exit()",
        "os.waitpid(child, 0)",
        "print(directory.exists(), directory)",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    exists, directory = done.stdout.split()
    assert exists == "True"
    assert not Path(directory).exists()


def test_without_a_home_directory_it_is_unpacked_for_the_process(compact, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("decoder.storage.first_opening.Path.home", no_home)
    assert Bundle.open(compact).parts["graph.dg"].path.exists()


def test_damage_is_told_although_the_cache_cannot_be_written(compact, cache, monkeypatch):
    def read_only(*arguments):
        raise PermissionError(13, "Permission denied", str(cache))

    Bundle.open(compact)
    content = bytearray(compact.read_bytes())
    content[content.index(b"graph.dg.xz") + 200] ^= 1
    compact.write_bytes(content)
    monkeypatch.setattr("decoder.recognizer.bundle.temporary_directory", read_only)
    Bundle.open(compact)
    with pytest.raises(FormatError, match=r"small\.argo:.*the file is damaged"):
        Bundle.open(compact, verify=True)


def test_another_format_of_the_search_tables_has_another_directory(compact, cache, monkeypatch):
    Bundle.open(compact)
    monkeypatch.setattr(table_file, "FORMAT", replace(table_file.FORMAT, version=table_file.FORMAT.version + 1))
    Bundle.open(compact)
    assert len(list(cache.iterdir())) == 2
