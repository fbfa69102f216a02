"""Fixtures shared by every room: where the real data is, and a repository-relative guess for it."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.compile_once import compile_once

# The tests run side by side, in processes of their own, on networks so small that most threads would only wait for each
# other.  The engine computes with two threads, whatever the machine has; whole trainings and recipes compute with one
# (`one_thread`).  A test that needs another number sets it.
# numpy's BLAS, which has not been imported yet, uses one.
os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Compiled modules are kept: collecting rewrites every test file, and tests start processes that import the packages.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("untimed", deadline=None)  # tests never measure time, of a busy machine least of all
settings.load_profile("untimed")

os.fsync = lambda descriptor: None  # no test is about a power failure, and hundreds of small files wait for the disk

if sys.platform == "win32":  # these limit memory with `resource`, or run commands in a POSIX shell
    collect_ignore = ["fuzz", "mutate", "docs/test_page_commands.py"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # what a shell's `&` hands down, to commands that tests interrupt
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def data_directory(variable: str, default: Path) -> Path:
    """The directory that an environment variable names, else the default; skips the test when it is not there."""
    directory = Path(os.environ.get(variable, default))
    if not directory.is_dir():
        pytest.skip(f"{directory} is not there; set {variable} to run this test")
    return directory


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory) -> None:
    """Processes of pytest-xdist wait for each other's compiled kernels."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        compile_once(tmp_path_factory.getbasetemp().parent)


@pytest.fixture(scope="session", autouse=True)
def quiet_compilation() -> None:
    """Commands do not report that they compile kernels, which depends on the tests before."""
    from readers.common import environment

    environment.LONG_COMPILATION = float("inf")


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """The engine computes with one thread; a second one would spend CPU time on waiting when the network is a toy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture
def threads_of_blas() -> Iterator[Callable[[], int]]:
    """A function that returns how many threads numpy's BLAS uses: four at first."""
    from readers.common.environment import blas_thread_calls

    if blas_thread_calls() is None:
        pytest.skip("the number of threads of numpy's BLAS cannot be set")
    get, put = blas_thread_calls()
    before = get()
    put(4)
    yield get
    put(before)


@pytest.fixture(scope="session")
def quick_pictures() -> None:
    """Trainings write an empty picture: to draw their curves takes longer than to train a toy network."""
    from acoustic.training import trainer

    trainer.draw_history = lambda rows, path: Path(path).write_bytes(b"\x89PNG")


@pytest.fixture
def drawn(quick_pictures, monkeypatch) -> None:
    """Trainings draw their curves."""
    from acoustic.training import trainer
    from acoustic.training.reporting.plots import draw_history

    monkeypatch.setattr(trainer, "draw_history", draw_history)


@pytest.fixture(scope="session")
def an4_dir() -> Path:
    """The CMU Census (AN4) corpus with HTK alignments."""
    return data_directory("ARGONAUT_AN4", SHARED_DATA / "an4")


@pytest.fixture(scope="session")
def htk_reference_dir() -> Path:
    """A recording and the feature files that HTK 3.4's HCopy made of it."""
    return data_directory("ARGONAUT_HTK_REFERENCE", SHARED_DATA / "htk_reference")
