"""A bundle of the small system, and a recording of known words."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from decoder.recognizer import BundleParts, pack
from readers.audio.audio_file import write_wav
from tests.recipes.systems.small_system import RATE, speak

OPTIONS = {"acweight": 0.5, "beam": 20.0}


def parts_of(root: Path, **changes) -> BundleParts:
    return BundleParts(
        **{
            "model": root / "model/net",
            "graph": root / "graph/graph.dg",
            "features": root / "hcopy.config",
            "sample_rate": RATE,
            "lm": root / "lm.arpa",
            "dictionary": root / "dict",
            "options": OPTIONS,
            "name": "tones",
            **changes,
        }
    )


def silence(count: int) -> np.ndarray:
    """Samples (N,) from -1 to 1 of what the model knows as silence, a tone."""
    noise = np.random.default_rng(1).normal(size=count)
    return (3000 * np.sin(2 * np.pi * 5800 * np.arange(count) / RATE) + 100 * noise) / 32768


@pytest.fixture(scope="session")
def packed(small_system, tmp_path_factory) -> Path:
    """A directory with digits.argo and speech.wav; not to be written to."""
    root = tmp_path_factory.mktemp("packed")
    pack(parts_of(small_system), root / "digits.argo")
    samples, _ = speak(["AB", "C"], np.random.default_rng(3))
    write_wav(root / "speech.wav", samples, RATE)
    return root


@pytest.fixture
def own(packed, tmp_path) -> Path:
    """A copy of the bundle that a test may change."""
    return Path(shutil.copy(packed / "digits.argo", tmp_path / "own.argo"))
