"""Fixtures shared by every room: where the real data is, and a repository-relative guess for it."""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# The tests run side by side, in processes of their own, on networks so small that most threads would only wait for each
# other.  The engine computes with two threads, whatever the machine has; a test that needs another number sets it.
# numpy's BLAS, which has not been imported yet, uses one.
os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Compiled modules are kept: collecting rewrites every test file, and tests start processes that import the packages.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("untimed", deadline=None)  # tests never measure time, of a busy machine least of all
settings.load_profile("untimed")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # what a shell's `&` hands down, to commands that tests interrupt
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def data_directory(variable: str, default: Path) -> Path:
    """The directory that an environment variable names, else the default; skips the test when it is not there."""
    directory = Path(os.environ.get(variable, default))
    if not directory.is_dir():
        pytest.skip(f"{directory} is not there; set {variable} to run this test")
    return directory


@pytest.fixture(scope="session")
def an4_dir() -> Path:
    """The CMU Census (AN4) corpus with HTK alignments."""
    return data_directory("ARGONAUT_AN4", SHARED_DATA / "an4")


@pytest.fixture(scope="session")
def htk_reference_dir() -> Path:
    """A recording and the feature files that HTK 3.4's HCopy made of it."""
    return data_directory("ARGONAUT_HTK_REFERENCE", SHARED_DATA / "htk_reference")
