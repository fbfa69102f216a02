"""The public names of every package: public_names.txt holds them, so that the interface changes on purpose only."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_imports import ROOMS, ROOT, modules_of

EXPECTED = Path(__file__).parent / "public_names.txt"
FACES = sorted(name for name, path in modules_of(ROOT, ROOMS).items() if path.name == "__init__.py")


def public_names():
    """A line for each package with public names: `package: name name ...`."""
    lines = []
    for name in FACES:
        names = getattr(importlib.import_module(name), "__all__", [])
        if names:
            lines.append(f"{name}: {' '.join(sorted(names))}")
    return "\n".join(lines) + "\n"


def test_public_names_change_on_purpose():
    """After a change that is meant: python -m tests.test_public_names > tests/public_names.txt"""
    assert public_names() == EXPECTED.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FACES)
def test_every_public_name_is_there_and_says_what_it_is(name):
    package = importlib.import_module(name)
    assert package.__doc__
    beside = {path.stem for path in Path(package.__file__).parent.iterdir()}
    assert not beside & set(getattr(package, "__all__", [])), "a module of this name would hide the public name"
    for public in getattr(package, "__all__", []):
        value = getattr(package, public)
        if callable(value):
            assert value.__doc__, f"{name}.{public} has no docstring"


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match=r"module 'readers.htk' has no attribute 'read_htkk'"):
        _ = importlib.import_module("readers.htk").read_htkk
    with pytest.raises(ImportError):
        exec("from decoder.search import Nothing")


def test_faces_import_nothing_before_it_is_asked_for():
    code = "import sys; import readers.htk, acoustic.engine, decoder.graph, decoder.search, features\n"
    code += "print(sorted(set(sys.modules) & {'numpy', 'numba', 'kaldifst', 'soundfile', 'matplotlib'}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


if __name__ == "__main__":
    print(public_names(), end="")
