"""Kernels whose cache is damaged, or cannot be written; the count and time of compiled kernels."""

import importlib.util
import io
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from numba.core import caching, ccallback, config

from readers.common import environment, kernels
from readers.common.environment import Compilation, Stopwatch, compilation
from readers.errors import KernelCacheWarning

resource = pytest.importorskip("resource")
fcntl = pytest.importorskip("fcntl")
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


def test_the_cache_of_other_packages_is_numbas_own():
    for owner, name in (
        (caching.IndexDataCacheFile, "save"),
        (caching.IndexDataCacheFile, "_load_index"),
        (caching.Cache, "load_overload"),
        (caching.Cache, "save_overload"),
        (ccallback.CFunc, "_compile_uncached"),
    ):
        assert getattr(owner, name).__module__ == owner.__module__
    assert all(one.__module__ == "numba.core.caching" for one in caching.CacheImpl._locator_classes)


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


def test_kernels_are_compiled_again_when_one_that_they_call_or_a_constant_changes(kernel, capsys, monkeypatch):
    monkeypatch.setattr(kernels, "PROGRAM", f"{kernel.parent}{os.sep}")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    helper = kernel.parent / "folder" / "helper.py"
    helper.parent.mkdir()
    monkeypatch.syspath_prepend(helper.parent)
    kernel.write_text("from helper import FACTORS, times\n" + KERNEL.replace("2 * x", "times(x) + FACTORS[0]"))

    def shown(helper_text: str) -> list[str]:
        helper.write_text(helper_text)
        kernels._digest.cache_clear()
        sys.modules.pop("helper", None)
        importlib.invalidate_caches()
        return run(kernel, capsys)

    text = KERNEL[: KERNEL.index("print")].replace("double", "times").replace("@", "FACTORS = (0, 1)\n@")
    assert shown(text) == ["42", "0"]
    assert shown(text) == ["42", "1"]
    assert shown(text.replace("2 * x", "3 * x")) == ["63", "0"]
    assert shown(text.replace("(0, 1)", "(5, 1)")) == ["47", "0"]
    assert shown(text.replace("(0, 1)", "(5, 1)")) == ["47", "1"]
    overloaded = "from numba.extending import overload\nFACTORS = (0, 1)\ndef times(x):\n    return 2 * x\n"
    overloaded += "@overload(times)\ndef of_times(x):\n    return lambda x: 4 * x\n"
    assert shown(overloaded) == ["84", "0"]
    assert shown(overloaded) == ["84", "1"]
    assert shown(overloaded.replace("4 * x", "5 * x")) == ["105", "0"]
    # Of a kernel that is defined below its caller:
    lower = "@njit(cache=True)\ndef lower(x):\n    return times(x)\n\nprint"
    kernel.write_text("from helper import times\n" + KERNEL.replace("2 * x", "lower(x)").replace("print", lower))
    assert shown(text) == ["42", "0"]
    assert shown(text) == ["42", "1"]
    assert shown(text.replace("2 * x", "3 * x")) == ["63", "0"]


def test_kernels_that_cannot_be_stored_are_used(kernel):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(kernel.with_name("cache")), "PYTHONPATH": f"{ROOT}"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, kernel], env=environment, capture_output=True, text=True, preexec_fn=no_space
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["42", "0"]
    assert "compiled kernels cannot be stored (File too large)" in done.stderr


@pytest.fixture
def read_only(kernel, tmp_path, monkeypatch):
    """Directories below which nothing can be written, none at first; kernels are kept beside the source."""
    directories = []

    def temporary_file(dir):
        if any(Path(dir).is_relative_to(one) for one in directories):
            raise PermissionError(13, "Permission denied")
        return io.BytesIO()

    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(caching.tempfile, "TemporaryFile", temporary_file)
    monkeypatch.setattr(compilation, "is_kept", True)
    return directories


def test_kernels_beside_a_source_that_is_read_only_are_used(kernel, read_only, tmp_path, capsys):
    assert run(kernel, capsys) == ["42", "0"]
    read_only.append(tmp_path / "__pycache__")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(kernel, capsys) == ["42", "1"]
        read_only.append(tmp_path / "home")
        assert run(kernel, capsys) == ["42", "1"]
    assert not list((tmp_path / "home").rglob("*.nb?"))


def test_kernels_of_a_chosen_directory_that_is_read_only_are_used(kernel, read_only, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    assert run(kernel, capsys) == ["42", "0"]
    read_only.append(tmp_path)
    assert run(kernel, capsys) == ["42", "1"]
    assert kernels.kernel_cache()[1]  # that of the checkout


def test_where_nothing_can_be_written_kernels_are_compiled_with_one_warning(kernel, read_only, tmp_path, capsys):
    kernel.write_text(KERNEL.replace("print", "@njit(cache=True)\ndef half(x):\n    return x / 2\n\nhalf(1)\nprint"))
    read_only.append(tmp_path)
    with pytest.warns(KernelCacheWarning) as warned:
        assert run(kernel, capsys) == ["42", "0"]
    assert [str(one.message) for one in warned] == [
        f"{tmp_path}/__pycache__: compiled kernels cannot be stored, neither here nor in the user's cache directory, "
        "and will be compiled again by every process; expected a writable directory; `argonaut warmup --cache DIR` "
        "fills one, and NUMBA_CACHE_DIR=DIR selects it"
    ]
    assert not compilation.is_kept


def test_without_a_home_directory_nothing_is_made_in_the_current_one(kernel, read_only, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "~/.cache")  # what numba makes of ~ if there is no home directory
    monkeypatch.chdir(tmp_path)
    read_only.append(tmp_path / "__pycache__")
    with pytest.warns(KernelCacheWarning):
        assert run(kernel, capsys) == ["42", "0"]
    assert not (tmp_path / "~").exists()


def test_a_kernel_is_stored_before_the_index_names_it_while_others_wait(tmp_path, monkeypatch):
    file = kernels._KernelFile(str(tmp_path), "kernel", "stamp")
    order = []

    def note(name, *_):
        order.append(name)
        with pytest.raises(BlockingIOError):
            other = os.open(tmp_path, os.O_RDONLY)
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            finally:
                os.close(other)

    monkeypatch.setattr(file, "_save_data", note)
    monkeypatch.setattr(file, "_save_index", note)
    file.save("key", "data")
    assert order == ["kernel.1.nbc", {"key": "kernel.1.nbc"}]
    monkeypatch.setattr(file, "_load_index", lambda: {"key": "kernel.1.nbc"})
    file.save("other", "data")
    file.save("key", "data")
    assert order[2::2] == ["kernel.2.nbc", "kernel.1.nbc"]


def test_compiled_callbacks_are_counted_and_cached_ones_are_not(kernel):
    kernel.write_text(
        "from readers.common.kernels import cfunc\n"
        "from readers.common.environment import compilation\n"
        "f = cfunc('float64(float64)', cache=True)(lambda x: 2 * x)\n"
        "print(f.ctypes(21.0), compilation.num_kernels, compilation.seconds > 0)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(kernel.with_name("cache")), "PYTHONPATH": f"{ROOT}"}
    for shown in ("42.0 1 True", "42.0 0 False"):
        done = subprocess.run([sys.executable, kernel], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == shown


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


FRESH = """
import sys
import numpy as np
from readers.common.kernels import njit

@njit(cache=True)
def squares(n):
    made = np.empty(n)
    for i in range(n):
        made[i] = i * i
    return made

loaded = squares(4).tolist(), len(squares.stats.cache_hits), "numba.np.arrayobj" in sys.modules

@njit
def total(n):
    return f"{n}", squares(n).sum()

print(*loaded, *total(4), "numba.np.arrayobj" in sys.modules)
"""


@pytest.mark.slow
def test_stored_kernels_are_used_without_importing_what_the_compiler_needs(tmp_path):
    """They allocate memory, and kernels that are compiled later may call them."""
    path = tmp_path / "fresh.py"
    path.write_text(FRESH)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    for stored in ("0 True", "1 False"):
        done = subprocess.run(
            [sys.executable, path], env=environment, capture_output=True, text=True, cwd=ROOT, check=False
        )
        assert done.stdout == f"[0.0, 1.0, 4.0, 9.0] {stored} 4 14.0 True\n", done.stderr
