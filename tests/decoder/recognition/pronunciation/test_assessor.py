"""What the assessor refuses, with an alignment and a map made by hand."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from decoder.alignment.frames import AlignedFrames, AlignedPhone
from decoder.recognizer import ForcedAligner
from decoder.recognizer.jobs.pronunciation import PronunciationAssessor
from decoder.recognizer.jobs.pronunciation.model import PronunciationModel, Scores
from readers.errors import ConfigError

PHONES = {"sil": 0, "a": 1, "b": 2}
PERIOD = 0.03


class PerfectMap:
    """A map that finds everything perfect."""

    def check(self, inventory: list[str], where: str) -> None:
        pass

    def __call__(self, measures: object) -> Scores:
        return Scores(np.full(2, 2.0), np.array([10.0]), 10.0)


def assessor(frames_per_phone: int) -> PronunciationAssessor:
    ends = 1 + frames_per_phone, 1 + 2 * frames_per_phone
    phones = (
        AlignedPhone("sil", 0, 0, 1, -1),
        AlignedPhone("a", 1, 1, ends[0], 0),
        AlignedPhone("b", 2, *ends, 0),
        AlignedPhone("sil", 0, ends[1], 20, -1),
    )
    posteriors = np.log(np.full((3, 20), 1 / 3))
    frames = AlignedFrames(("AB",), phones, posteriors, PERIOD, 20 * PERIOD)
    aligner = SimpleNamespace(
        name="flat.argo",
        goodness=SimpleNamespace(phones=PHONES),
        graphs=SimpleNamespace(silence="sil"),
        align_frames=lambda audio, text, rate: frames,
    )
    return PronunciationAssessor(cast(ForcedAligner, aligner), cast(PronunciationModel, PerfectMap()))


def test_words_that_are_passed_as_fast_as_possible_were_not_spoken():
    with pytest.raises(ConfigError, match=r"^silence in place of all words; expected speech"):
        assessor(1).assess("silence.wav", "AB")


def test_fast_speech_is_scored():
    pronunciation = assessor(2).assess("speech.wav", "AB")
    assert pronunciation.score == 10.0
    assert [(phone.text, phone.start, phone.end) for phone in pronunciation.words[0].phones] == [
        ("a", 0.03, 0.09),
        ("b", 0.09, 0.15),
    ]
