"""Compact bundles, and the directory to which they are unpacked."""

import shutil
from pathlib import Path

import pytest

from decoder.recognizer import pack
from tests.recipes.cli.bundle.conftest import parts_of


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """The directory to which bundles are unpacked."""
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    return tmp_path / "cache" / "argonaut" / "bundles"


@pytest.fixture
def compact(small_system, tmp_path, cache) -> Path:
    """A compact bundle that has not been unpacked yet."""
    pack(parts_of(small_system, compact=True), tmp_path / "small.argo")
    shutil.rmtree(cache)
    return tmp_path / "small.argo"
