"""AN4's test set as other audio: a bundle recognises it as well at 44.1 kHz in stereo, nearly as well from MP3."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from decoder import Recognizer
from decoder.scoring.error_counts import score
from readers.audio.audio_file import read_audio
from readers.audio.resampling import resample
from readers.errors import ConfigError
from recipes.an4.corpus import Utterance, find_sets

HIGH = 44100

pytestmark = [pytest.mark.corpus, pytest.mark.slow]


@pytest.fixture(scope="module")
def recognizer() -> Recognizer:
    """The bundle of recipe an4."""
    if "ARGONAUT_AN4_BUNDLE" not in os.environ:
        pytest.skip("set ARGONAUT_AN4_BUNDLE to the bundle of recipe an4 to run this test")
    return Recognizer.load(os.environ["ARGONAUT_AN4_BUNDLE"])


@pytest.fixture(scope="module")
def utterances(an4_dir) -> list[Utterance]:
    return find_sets(an4_dir)["test"]


@pytest.fixture(scope="module")
def original(recognizer, utterances) -> float:
    return error_rate(recognizer, utterances, lambda utterance: utterance.audio)


def error_rate(recognizer: Recognizer, utterances: list[Utterance], path: Callable[[Utterance], Path]) -> float:
    """Word error rate in percent."""
    results = recognizer.transcribe_many([path(utterance) for utterance in utterances], 2)
    found = {}
    for utterance, (_, transcript) in zip(utterances, results, strict=True):
        assert not isinstance(transcript, Exception), transcript
        found[utterance.name] = transcript.text.split()
    return score({utterance.name: list(utterance.words) for utterance in utterances}, found).total.word_error_rate


def written(utterance: Utterance, root: Path, extension: str, channels: int, rate: int) -> Path:
    """Write an utterance as other audio."""
    samples, given = read_audio(utterance.audio)
    other = np.clip(resample(samples, given, rate) / 32768, -1, 1)
    path = root / f"{utterance.name}.{extension}"
    soundfile.write(path, np.stack([other] * channels, axis=1), rate)
    return path


@pytest.mark.parametrize(("extension", "channels", "most"), [("flac", 2, 0.3), ("mp3", 1, 0.8)])
def test_error_rate_of_other_audio(recognizer, utterances, original, tmp_path, extension, channels, most):
    if extension == "mp3" and "MP3" not in soundfile.available_formats():
        pytest.skip("libsndfile cannot write MP3")
    found = error_rate(
        recognizer.with_audio(channel="mix"), utterances, lambda u: written(u, tmp_path, extension, channels, HIGH)
    )
    assert abs(found - original) <= most


def test_telephone_audio_is_refused_with_both_rates(recognizer, utterances, tmp_path):
    path = written(utterances[0], tmp_path, "wav", 1, 8000)
    with pytest.raises(ConfigError, match="sample rate 8000 Hz; expected at least 16000 Hz"):
        recognizer.transcribe(path)
