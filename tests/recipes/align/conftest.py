"""A phonetician with a corpus of two speakers, a dictionary and a bundle."""

import shutil

import numpy as np
import pytest
from praatio import textgrid

from decoder.recognizer import pack
from readers.audio.audio_file import write_wav
from tests.recipes.cli.bundle.conftest import parts_of
from tests.recipes.systems.small_system import RATE, User, speak

RUN = ("corpus", "dict", "tones.argo", "aligned", "-j", "1")
SPOKEN = {"anna/one": "AB C", "anna/two": "CAB", "otto/three": "BA BA C"}


@pytest.fixture(scope="session")
def speakers(small_system, tmp_path_factory):
    """A directory with a bundle, a dictionary, and a corpus in folders of two speakers; not to be written to."""
    root = tmp_path_factory.mktemp("speakers")
    pack(parts_of(small_system), root / "tones.argo")
    shutil.copy(small_system / "dict", root / "dict")
    for number, (name, words) in enumerate(SPOKEN.items()):
        path = root / "corpus" / f"{name}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        samples, _ = speak(words.split(), np.random.default_rng(number))
        write_wav(path, np.append(samples, np.zeros(37)), RATE)
        path.with_suffix(".txt").write_text(f"{words}\n")
    return root


@pytest.fixture
def phonetician(speakers, tmp_path, monkeypatch, capsys) -> User:
    shutil.copytree(speakers, tmp_path / "own")
    monkeypatch.chdir(tmp_path / "own")
    return User(tmp_path / "own", capsys)


def grid(user: User, name: str):
    return textgrid.openTextgrid(str(user.root / f"aligned/{name}.TextGrid"), includeEmptyIntervals=True)


def spoken(tier) -> list[str]:
    return [one.label for one in tier.entries if one.label]
