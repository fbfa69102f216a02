"""The assessor: one object from audio and the words that should be said to scores of their pronunciation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from decoder.alignment.frames import SILENCE
from decoder.recognizer.bundle import PRONUNCIATION, Bundle
from decoder.recognizer.forced_aligner import ForcedAligner
from decoder.recognizer.jobs.pronunciation.measures import SHARE_BEST, Measures, measure
from decoder.recognizer.jobs.pronunciation.model import PronunciationModel
from decoder.recognizer.jobs.pronunciation.result import MISSING, Pronunciation, ScoredPhone, ScoredWord
from decoder.recognizer.recording import Audio, AudioOptions
from readers.errors import ConfigError

# Seconds per phone, at most, of an alignment with silence or noise: it passes each phone as fast as its model allows,
# in 30 ms.  The fastest speakers need twice that.
NO_SPEECH = 0.035
# `Pronunciation.matched` below which another text was probably said.  With the bundle en and a sentence of each of 24
# speakers of speechocean762 it was 0.45 or more, with the texts of other sentences of the same length 0.31 or less.
LEAST_MATCHED = 1 / 3
SOUNDS_RIGHT = 1.5  # score of a phone from which no other is taken to have been said in its place


class PronunciationAssessor:
    """Scores how well known words were pronounced; any number of threads may use one.

    Parameters
    ----------
    aligner : ForcedAligner
    model : PronunciationModel

    Raises
    ------
    ModelError
        For a model of other phones than those of the aligner.

    Examples
    --------
    >>> pronunciation = PronunciationAssessor.load("digits.argo").assess("speech.wav", "AB C")
    >>> [word.text for word in pronunciation.words]
    ['AB', 'C']
    """

    def __init__(self, aligner: ForcedAligner, model: PronunciationModel):
        model.check(list(aligner.goodness.phones), aligner.name)
        self.aligner = aligner
        self.model = model
        self._phones = list(aligner.goodness.phones)

    @classmethod
    def load(cls, path: str | Path, audio: AudioOptions | None = None) -> Self:
        """Open a bundle that has a map of pronunciation scores.

        Parameters
        ----------
        path : str or Path
            A file NAME.argo or a directory, which `argonaut pack` made and `argonaut pronounce --train` completed.
        audio : AudioOptions, optional
            Channel, and whether audio of a lower sample rate is accepted.

        Returns
        -------
        PronunciationAssessor

        Raises
        ------
        ConfigError
            For a bundle without the map, a dictionary or tables of phone models.
        FormatError, ModelError, GraphError
            For a damaged bundle.
        OSError
        """
        return cls.of(Bundle.open(path), ForcedAligner.load(path, audio=audio))

    @classmethod
    def of(cls, bundle: Bundle, aligner: ForcedAligner) -> Self:
        """Make one of an open bundle and its aligner.

        Parameters
        ----------
        bundle : Bundle
        aligner : ForcedAligner

        Returns
        -------
        PronunciationAssessor

        Raises
        ------
        ConfigError
            For a bundle without the map.
        FormatError, ModelError
            For a damaged map.
        """
        if PRONUNCIATION not in bundle.parts:
            raise ConfigError(
                f"{bundle.path}: no map of pronunciation scores; expected one, which `argonaut pronounce --train` fits"
            )
        return cls(aligner, PronunciationModel.load(bundle.parts[PRONUNCIATION]))

    def assess(self, audio: Audio, text: str | Sequence[str], rate: float | None = None) -> Pronunciation:
        """Score one recording.

        Parameters
        ----------
        audio, text, rate
            As for `ForcedAligner.align`.

        Returns
        -------
        Pronunciation

        Raises
        ------
        ConfigError, GraphError, ShapeError, OSError
            As `ForcedAligner.align`; ConfigError also for silence or faint noise in place of all words.
        """
        frames = self.aligner.align_frames(audio, text, rate)
        measures = measure(frames.log_posteriors, frames.phones, frames.period)
        scores = self.model(measures)
        said = self._said(measures, scores.phones)
        seconds_per_phone = np.diff(measures.times).mean()
        if seconds_per_phone <= NO_SPEECH or all(phone == MISSING for phone in said):
            # The map was fitted to speech, and may give silence the best score.
            raise ConfigError("silence in place of all words; expected speech")
        matched = float(measures.basic[:, SHARE_BEST].mean())
        doubt = [] if matched >= LEAST_MATCHED else [f"another text was probably said: {matched:.0%} of it match"]
        words: list[list[ScoredPhone]] = [[] for _ in frames.words]
        spoken = [phone for phone in frames.phones if phone.word != SILENCE]
        for phone, (start, end), score, instead in zip(spoken, measures.times, scores.phones, said, strict=True):
            # The last frame may end after the audio, with subsampled models.
            scored = ScoredPhone(phone.text, float(start), min(float(end), frames.seconds), float(score), instead)
            words[phone.word].append(scored)
        return Pronunciation(
            scores.sentence,
            tuple(
                ScoredWord(text, phones[0].start, phones[-1].end, float(score), tuple(phones))
                for text, phones, score in zip(frames.words, words, scores.words, strict=True)
            ),
            frames.seconds,
            (*frames.notes, *doubt),
            matched,
        )

    def _said(self, measures: Measures, scores: np.ndarray) -> list[str | None]:
        """Return what was probably said in place of each phone, None if it was the phone itself.

        A phone with a low score is taken for the one of the highest mean log posterior.  A margin between the two in
        place of the score would be right less often: the network errs, too, and the map knows where.
        """
        return [
            None if score >= SOUNDS_RIGHT or row == means.argmax() else self._name(int(means.argmax()))
            for row, means, score in zip(measures.rows, measures.means, scores, strict=True)
        ]

    def _name(self, row: int) -> str:
        phone = self._phones[row]
        return MISSING if phone == self.aligner.graphs.silence else phone
