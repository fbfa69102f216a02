"""Kernels whose cache is damaged, or cannot be written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def run(folder, full=False):
    (folder / "kernel.py").write_text(KERNEL)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": f"{ROOT}"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    before = no_space if full else None
    done = subprocess.run(
        [sys.executable, folder / "kernel.py"], env=environment, capture_output=True, text=True, preexec_fn=before
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def test_damaged_files_are_compiled_again(tmp_path):
    assert run(tmp_path)[0] == ["42", "0"]
    assert run(tmp_path)[0] == ["42", "1"]
    for suffix in ("nbi", "nbc"):
        (file,) = (tmp_path / "cache").rglob(f"*.{suffix}")
        whole = file.read_bytes()
        for damaged in (whole[: len(whole) // 2], whole[:5], b"", b"\xff" * 50):
            file.write_bytes(damaged)
            found, messages = run(tmp_path)
            assert (found, messages) == (["42", "0"], "")
            assert file.stat().st_size == len(whole)
    assert run(tmp_path)[0] == ["42", "1"]


def test_kernels_that_cannot_be_stored_are_used(tmp_path):
    found, messages = run(tmp_path, full=True)
    assert found == ["42", "0"]
    assert "compiled kernels cannot be stored (File too large)" in messages
