"""Folders and files stay small: a folder that is no catalogue has at most 14 entries, a file at most 500 lines.

A file of 450 lines that is one idea is fine; beyond 500 it probably has two.
"""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tests.structure.test_imports import ROOMS, ROOT

MAX_ENTRIES, MAX_LINES = 14, 500
FOLDERS = (*ROOMS, "benchmarks", "docs", "tests")
GENERATED = ("__pycache__", "docs/reference/api", ".ipynb_checkpoints")


def files(root: Path) -> list[Path]:
    """The files below the folders of a checkout, relative to it; generated ones left out."""
    found = [path.relative_to(root) for name in FOLDERS for path in (root / name).rglob("*") if path.is_file()]
    return [path for path in found if not any(part in path.as_posix() for part in GENERATED)]


def is_catalogue(root: Path, folder: Path) -> bool:
    """Whether a folder is called a catalogue by its package; tests of a catalogue are one, too."""
    package = folder.parent if folder.name == "config" else folder
    path = root / package / "__init__.py"
    if folder.parts[0] == "tests" and len(folder.parts) > 1 and not path.exists():
        return is_catalogue(root, folder.relative_to("tests"))
    return path.exists() and "catalogue" in (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")


def overfull(root: Path) -> dict[str, int]:
    """Number of entries by folder, of the folders that have too many."""
    entries = defaultdict(set)
    for path in files(root):
        for folder, entry in zip(path.parents, (path, *path.parents)):
            if entry.name not in ("__init__.py", "__init__.pyi", "py.typed"):
                entries[folder].add(entry.name)
    del entries[Path()]
    return {
        folder.as_posix(): len(names)
        for folder, names in entries.items()
        if len(names) > MAX_ENTRIES and not is_catalogue(root, folder)
    }


def test_no_folder_is_overfull():
    assert overfull(ROOT) == {}


@pytest.mark.parametrize(("docstring", "expected"), [("The nodes.", {"acoustic": 15}), ("A catalogue.", {})])
def test_overfull_folders_are_found_unless_they_are_catalogues(tmp_path, docstring, expected):
    (tmp_path / "acoustic").mkdir()
    (tmp_path / "acoustic" / "__init__.py").write_text(f'"""{docstring}"""\n')
    for number in range(MAX_ENTRIES + 1):
        (tmp_path / "acoustic" / f"n{number}.py").touch()
    assert overfull(tmp_path) == expected


def test_no_file_is_long():
    scripts = [path for path in files(ROOT) if path.suffix == ".py"]
    lengths = {path.as_posix(): len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in scripts}
    assert {path: length for path, length in lengths.items() if length > MAX_LINES} == {}
