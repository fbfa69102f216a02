"""Kernels whose cache is damaged, or cannot be written; the count and time of compiled kernels."""

import importlib.util
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from numba.core import config

from readers.common import environment
from readers.common.environment import Compilation, Stopwatch, compilation

resource = pytest.importorskip("resource")
ROOT = Path(__file__).parents[3]
KERNEL = """
from readers.common.kernels import njit

@njit(cache=True)
def double(x):
    return 2 * x

print(double(21), len(double.stats.cache_hits))
"""


def no_space():
    """Let writing to files fail as on a full disk, though with another error."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A file with a kernel, and an empty cache beside it."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    return path


def run(kernel, capsys):
    """Import the file again, and return what it prints."""
    spec = importlib.util.spec_from_file_location("kernel", kernel)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return capsys.readouterr().out.split()


def test_damaged_files_are_compiled_again(kernel, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(kernel, capsys) == ["42", "0"]
        assert run(kernel, capsys) == ["42", "1"]
        for suffix in ("nbi", "nbc"):
            (file,) = kernel.with_name("cache").rglob(f"*.{suffix}")
            whole = file.read_bytes()
            for damaged in (whole[: len(whole) // 2], whole[:5], b"", b"\xff" * 50):
                file.write_bytes(damaged)
                assert run(kernel, capsys) == ["42", "0"]
                assert run(kernel, capsys) == ["42", "1"]
        assert run(kernel, capsys) == ["42", "1"]


def test_kernels_that_cannot_be_stored_are_used(kernel):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(kernel.with_name("cache")), "PYTHONPATH": f"{ROOT}"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, kernel], env=environment, capture_output=True, text=True, preexec_fn=no_space
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["42", "0"]
    assert "compiled kernels cannot be stored (File too large)" in done.stderr


def test_compiled_kernels_are_counted_and_cached_ones_are_not(kernel, capsys, monkeypatch):
    seen = []
    monkeypatch.setattr(compilation, "observer", lambda compiled: seen.append(compiled.num_kernels))
    number, seconds = compilation.num_kernels, compilation.seconds
    run(kernel, capsys)
    assert compilation.num_kernels == number + 1
    assert Path(compilation.cache).is_relative_to(kernel.with_name("cache"))
    assert compilation.seconds > seconds
    assert seen == [number, number + 1]
    run(kernel, capsys)
    assert seen == [number, number + 1]


def test_nested_compilations_count_once_and_stop_the_watch(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(environment.time, "monotonic", lambda: now[0])
    compiled = Compilation()
    monkeypatch.setattr(environment, "compilation", compiled)
    watch = Stopwatch()
    now[0] += 2
    compiled.begin()
    now[0] += 10
    compiled.begin()
    now[0] += 3
    assert (compiled.seconds, watch.seconds) == (13, 2)
    compiled.end("cache")
    now[0] += 1
    compiled.end("cache")
    now[0] += 5
    assert (compiled.seconds, watch.seconds, compiled.num_kernels) == (14, 7, 2)


@pytest.mark.parametrize("collects", [True, False])
def test_the_garbage_collector_waits_for_compilations(collects, monkeypatch):
    calls = []
    monkeypatch.setattr(environment.gc, "isenabled", lambda: collects)
    monkeypatch.setattr(environment.gc, "disable", lambda: calls.append("disable"))
    monkeypatch.setattr(environment.gc, "enable", lambda: calls.append("enable"))
    compiled = Compilation()
    compiled.begin()
    compiled.begin()
    compiled.end()
    assert calls == ["disable"]
    compiled.end()
    assert calls == ["disable", "enable"][: 1 + collects]
