"""Packages of other people with the names of ours: one line that names them, before anything is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
START = "import sys; sys.path.append({root!r}); from recipes.cli.main import main; sys.exit(main(['--version']))"


def start(directory):
    """A command started as its script starts it, with another directory first on Python's path."""
    environment = os.environ | {"PYTHONPATH": str(directory)}
    code = START.format(root=str(ROOT))
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=directory)


@pytest.mark.parametrize("room", ["readers", "features", "acoustic", "decoder"])
@pytest.mark.parametrize("form", ["{}.py", "{}/__init__.py", "{}/part.py"])
def test_a_foreign_package_is_named(room, form, tmp_path):
    path = tmp_path / form.format(room)
    path.parent.mkdir(exist_ok=True)
    path.write_text("", encoding="utf-8")
    done = start(tmp_path)
    if form == "{}/part.py":  # a folder without __init__ comes after packages wherever it stands
        assert done.returncode == 0
        return
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: package '{room}': {path.resolve()} comes first on Python's path; expected {ROOT}")


def test_without_one_the_command_runs(tmp_path):
    done = start(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
