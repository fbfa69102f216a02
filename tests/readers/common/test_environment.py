"""Cores that the process may use, and the threads of numpy's BLAS."""

import gc
import importlib.metadata
import os
import sys
import tomllib
from pathlib import Path

import numpy
import pytest

from readers.common import environment
from readers.common.environment import (
    BlasThreads,
    available_cores,
    one_blas_thread,
    program_version,
    quick_thread_switches,
    using_cores,
    without_collections,
)
from readers.common.jobs.runner import run_settings
from readers.errors import ConfigError


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)


def test_limit_of_cores(eight_cores, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert available_cores() == 8
    with using_cores(3):
        assert available_cores() == 3
        assert os.environ["OMP_NUM_THREADS"] == "3"
        with using_cores(5):  # the smaller number holds
            assert available_cores() == 3
            assert os.environ["OMP_NUM_THREADS"] == "3"
        with using_cores(2):
            assert available_cores() == 2
        assert available_cores() == 3
    assert available_cores() == 8
    assert "OMP_NUM_THREADS" not in os.environ
    with using_cores(99):
        assert available_cores() == 8


@pytest.mark.parametrize("outside", [None, "7"])
def test_limits_of_threads_that_leave_in_another_order(eight_cores, threads_of_blas, monkeypatch, outside):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if outside:
        monkeypatch.setenv("OMP_NUM_THREADS", outside)
    first, second = using_cores(2), using_cores(3)
    first.__enter__()
    second.__enter__()
    assert (available_cores(), os.environ["OMP_NUM_THREADS"], threads_of_blas()) == (2, "2", 2)
    first.__exit__(None, None, None)
    assert (available_cores(), os.environ["OMP_NUM_THREADS"], threads_of_blas()) == (3, "3", 3)
    second.__exit__(None, None, None)
    assert (available_cores(), os.environ.get("OMP_NUM_THREADS"), threads_of_blas()) == (8, outside, 4)


def test_no_cores_are_refused(threads_of_blas):
    with pytest.raises(ConfigError, match="using_cores: 0; expected at least 1"), using_cores(0):
        pass
    assert threads_of_blas() == 4


def test_limit_ends_with_an_exception(eight_cores):
    with pytest.raises(ValueError), using_cores(2):
        raise ValueError
    assert available_cores() == 8


def test_cores_limit_the_threads_of_blas(threads_of_blas):
    with using_cores(2):
        assert threads_of_blas() == 2
    assert threads_of_blas() == 4
    with using_cores(99):
        assert threads_of_blas() == 4


def test_the_smallest_number_of_blas_threads_holds(threads_of_blas):
    with one_blas_thread:
        assert threads_of_blas() == 1
        with one_blas_thread, BlasThreads(2):
            assert threads_of_blas() == 1
        assert threads_of_blas() == 1
    assert threads_of_blas() == 4
    outer, inner = BlasThreads(2), BlasThreads(3)
    outer.__enter__()
    inner.__enter__()
    outer.__exit__()
    assert threads_of_blas() == 3
    inner.__exit__()
    assert threads_of_blas() == 4


def test_the_garbage_collector_waits_and_goes_on_even_after_an_exception():
    assert gc.isenabled()
    with pytest.raises(ValueError), without_collections():
        with without_collections():
            pass
        assert not gc.isenabled()
        raise ValueError
    assert gc.isenabled()


def test_threads_switch_quickly_and_as_before_even_after_an_exception():
    before = sys.getswitchinterval()
    with pytest.raises(ValueError), quick_thread_switches():
        assert sys.getswitchinterval() == pytest.approx(0.0005)
        raise ValueError
    assert sys.getswitchinterval() == before


@pytest.fixture
def not_installed(monkeypatch):
    def no_distribution(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", no_distribution)
    program_version.cache_clear()
    yield
    program_version.cache_clear()


def test_version_of_a_checkout_that_is_not_installed(not_installed):
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert program_version() == project["version"]


@pytest.mark.parametrize("text", [None, '[project]\nname = "other"\nversion = "9"\n', "[project\n", "[tool.ruff]\n"])
def test_unknown_version_of_copied_packages(not_installed, tmp_path, monkeypatch, text):
    monkeypatch.setattr(environment, "CHECKOUT", tmp_path)
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    assert program_version() == "0+unknown"


def test_settings_of_a_run_of_a_program_that_is_not_installed(not_installed):
    assert run_settings().program == program_version()


def test_on_windows_the_library_behind_numpy_is_the_one_beside_it(tmp_path, monkeypatch):
    library = tmp_path / "numpy.libs" / "libscipy_openblas64_-1a2b.dll"
    library.parent.mkdir()
    library.touch()
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(numpy, "__file__", str(tmp_path / "numpy" / "__init__.py"))
    monkeypatch.setattr(environment.ctypes, "CDLL", lambda path: path)
    assert environment.numpys_library.__wrapped__() == str(library)
    library.unlink()
    assert environment.numpys_library.__wrapped__() == numpy._core._multiarray_umath.__file__
