"""The systems of small_system.py and argon_system.py, made once per session; a user; recipes without pictures."""

from pathlib import Path

import pytest

from tests.recipes.systems.argon_system import make_argon_system
from tests.recipes.systems.small_system import User, copy_system, make_small_system


@pytest.fixture(scope="session", autouse=True)
def without_pictures(quick_pictures) -> None:
    """All tests below; those that look at a picture ask for `drawn`."""


@pytest.fixture(scope="module", autouse=True)
def with_one_thread(one_thread) -> None:
    """All tests below."""


@pytest.fixture(scope="session")
def small_system(tmp_path_factory) -> Path:
    """Where the small system lies; not to be written to."""
    root = tmp_path_factory.mktemp("small_system")
    make_small_system(root)
    return root


@pytest.fixture
def user(small_system, tmp_path, monkeypatch, capsys) -> User:
    """A user in a copy of the small system."""
    root = tmp_path / "system"
    copy_system(small_system, root)
    monkeypatch.chdir(root)
    return User(root, capsys)


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Path:
    """Where the system lies that `argon` decodes with."""
    root = tmp_path_factory.mktemp("argon")
    make_argon_system(root)
    return root


@pytest.fixture
def toy_run(monkeypatch) -> None:
    """One thread and no pictures of results: whole recipes on a toy corpus."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr("recipes.pictures.confusions.draw_confusions", lambda results, path: None)
    monkeypatch.setattr("recipes.pictures.tuning.draw_tuning", lambda record, path: None)
