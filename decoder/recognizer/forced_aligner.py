"""The aligner: one object from audio and known words to their times and confidences, however it was assembled."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from decoder.alignment.aligner import Aligner, check_outputs
from decoder.alignment.goodness import PhoneGoodness
from decoder.graph.transcript import TranscriptGraphs
from decoder.recognizer.assembly import open_bundle_scores, transcript_graphs
from decoder.recognizer.bundle import Bundle
from decoder.recognizer.front_end import FrontEnd
from decoder.recognizer.recording import AudioInput, AudioOptions, Recording
from decoder.recognizer.transcript import Transcript, aligned_transcript
from readers.audio.audio_file import Channel
from readers.dictionaries.forms import read_any_dictionary
from readers.errors import ConfigError
from readers.htk.dictionary import Pronunciation


class ForcedAligner:
    """Finds when known words were spoken, and how well the audio matches them.

    `ForcedAligner.load` opens a bundle; the constructor takes the parts one by one.  Any number of threads may use one.

    Parameters
    ----------
    front_end : FrontEnd
        Features and acoustic model.
    graphs : TranscriptGraphs
        Dictionary and phone models.
    beam : float, optional
        Beam of the search, doubled up to three times while no path survives; None is exact.
    audio : AudioOptions, optional
        Channel, and whether audio of a lower sample rate is accepted.
    name : str
        For messages.

    Raises
    ------
    ConfigError
        For a beam that is not positive.
    GraphError
        For a model with fewer outputs than the phone models need.

    Examples
    --------
    >>> aligned = ForcedAligner.load("digits.argo").align("speech.wav", "AB C")
    >>> [(word.text, word.confidence > 0.5) for word in aligned.words]
    [('AB', True), ('C', True)]
    >>> [phone.text for phone in aligned.phones]
    ['sil', 'a', 'b', 'c', 'sil']
    """

    def __init__(
        self,
        front_end: FrontEnd,
        graphs: TranscriptGraphs,
        beam: float | None = None,
        audio: AudioOptions | None = None,
        name: str = "aligner",
    ):
        check_outputs(graphs, front_end.scorer.num_outputs, name)
        self.name, self.front_end, self.graphs = name, front_end, graphs
        self.aligner, self.goodness = Aligner(graphs, beam=beam), PhoneGoodness(graphs)
        self._audio = AudioInput(front_end, audio or AudioOptions())

    @property
    def channel(self) -> Channel:
        """Channel of audio with several, counted from 0, or "mix" for their mean; None if none was chosen."""
        return self._audio.channel

    @classmethod
    def load(
        cls,
        path: str | Path,
        dictionary: str | Path | Sequence[Pronunciation] | None = None,
        beam: float | None = None,
        audio: AudioOptions | None = None,
    ) -> Self:
        """Open a bundle, without its graph and language model.

        Parameters
        ----------
        path : str or Path
            A file NAME.argo or a directory, which `argonaut pack` made.
        dictionary : str, Path or sequence of Pronunciation, optional
            A file of any form; by default the dictionary of the bundle.
        beam, audio : optional
            As for the constructor.

        Returns
        -------
        ForcedAligner

        Raises
        ------
        FormatError
            For a file that is no bundle, and for a damaged one.
        ConfigError
            For a bundle without tables of phone models, or without a dictionary if none is given.
        GraphError
            For tables that do not fit together.
        OSError
        """
        bundle = Bundle.open(path, verify=False)
        if isinstance(dictionary, (str, Path)):
            dictionary = read_any_dictionary(dictionary)
        return cls(open_bundle_scores(bundle), transcript_graphs(bundle, dictionary), beam, audio, f"{path}")

    def align(self, audio: str | Path | np.ndarray, text: str | Sequence[str], rate: float | None = None) -> Transcript:
        """Align one recording.

        Parameters
        ----------
        audio : str, Path, array (N,) or (N, channels)
            An audio file or samples, as for `Recognizer.transcribe`.
        text : str or sequence of str
            The words, which must be in the dictionary.
        rate : float, optional
            Sample rate in Hz; required for samples, refused for a file.

        Returns
        -------
        Transcript
            Words and phones with times and confidences.  Inserted silence is a phone without a confidence.

        Raises
        ------
        ConfigError
            Without words, and for audio that does not fit the model.
        GraphError
            For unknown words.
        ShapeError
            For audio that is too short for the words.
        OSError
        """
        words = self._words(text)
        return self._align(self._audio.open(audio, rate), words)

    def align_samples(self, samples: np.ndarray, rate: float, words: Sequence[str], where: str) -> Transcript:
        """Align samples as the readers of audio files return them.

        Parameters
        ----------
        samples : (N,) array
            One channel, on the scale of 16-bit integers.
        rate : float
            Sample rate in Hz.
        words : sequence of str
            The words, which must be in the dictionary.
        where : str
            The name of the samples in messages.

        Returns
        -------
        Transcript

        Raises
        ------
        ConfigError, GraphError, ShapeError
            As `align`.
        """
        words = self._words(words)
        return self._align(
            Recording(where, rate, self._audio.target(rate, where), iter([samples]), len(samples)), words
        )

    def _words(self, text: str | Sequence[str]) -> list[str]:
        words = text.split() if isinstance(text, str) else list(text)
        if not words:
            raise ConfigError(f"{self.name}: no words to align; expected at least one")
        return words

    def _align(self, recording: Recording, words: list[str]) -> Transcript:
        scores, period = self._audio.scores(recording, recording.whole())
        alignment = self.aligner.align(words, scores)
        return aligned_transcript(alignment, period, recording.seconds, self.goodness.of(alignment, scores))
