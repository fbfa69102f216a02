"""The aligner: one object from audio and known words to their times and confidences, however it was assembled."""

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np

from decoder.alignment.aligner import Aligner, check_outputs
from decoder.alignment.annotated import FRAME_COST, AnnotatedLabel, labels_of, with_annotations, words_to_pronounce
from decoder.alignment.frames import AlignedFrames, aligned_phones
from decoder.alignment.goodness import PhoneGoodness
from decoder.alignment.interpolation import FrameTimes, boundary_times
from decoder.alignment.long_recordings.audio_scores import AudioScores
from decoder.alignment.long_recordings.long_alignment import align_long
from decoder.alignment.long_recordings.options import LongOptions
from decoder.alignment.long_recordings.results import LongAlignment
from decoder.graph.transcript import TranscriptGraphs
from decoder.recognizer.assembly import open_alignment
from decoder.recognizer.front_end import FrontEnd
from decoder.recognizer.recording import Audio, AudioInput, AudioOptions, Progress, Recording
from decoder.recognizer.transcript import Transcript, aligned_transcript
from decoder.search.options import SearchOptions
from decoder.storage.installed import find_model
from readers.audio.audio_file import Channel
from readers.common.file_part import FilePart
from readers.common.text import canonical
from readers.corpora.annotations import Annotations, Kind
from readers.corpora.words import WordForms
from readers.dictionaries.case import AUTO, InCase, best_case, check_case
from readers.errors import ConfigError
from readers.htk.dictionary import Pronunciation
from readers.htk.units import TICKS_PER_SECOND

if TYPE_CHECKING:
    from decoder.g2p.model import G2P

Times = Literal["fine", "frames"]
MOST_COMPETITORS = 5000  # words


class ForcedAligner:
    """Finds when known words were spoken, and how well the audio matches them.

    `ForcedAligner.load` opens a bundle; the constructor takes the parts one by one.  Any number of threads may use one.
    One that was loaded can be pickled, by the path from which it was loaded.

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
    search : SearchOptions, optional
        Weights and beams of the recognition of long recordings.
    case : {"auto", "keep", "upper", "lower"}
        In which words are looked up in the dictionary; "auto" is that of which it has the most words of the text.
        Results have the words as they are in the text.
    g2p : FilePart, optional
        A model of `argonaut g2p train`, which guesses the pronunciations of words that the dictionary lacks.
    times : {"fine", "frames"}
        Boundaries where they were spoken, between frames, too; or on HTK's grid, k * period before frame k, which is
        earlier by half of window minus period (`decoder.alignment.interpolation`).
    annotations : Annotations, optional
        What of a text is a cut-off word, laughter, breath, noise or unknown speech.  Of a cut-off word a part is
        aligned; the others, and words without a pronunciation, are any phones, at a cost per frame.

    Attributes
    ----------
    searching : callable, optional
        Opens front end and graphs, by these names, of a network that recognises better; for long recordings.

    Raises
    ------
    ConfigError
        For a beam that is not positive, and for an unknown case and unknown times.
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

    guessed: tuple[Pronunciation, ...] = ()  # of `completed`
    searching: Callable[[], Mapping[str, Any]] | None = None
    _loaded: tuple[Any, ...] | None = None  # the arguments of `load`

    def __init__(
        self,
        front_end: FrontEnd,
        graphs: TranscriptGraphs,
        beam: float | None = None,
        audio: AudioOptions | None = None,
        name: str = "aligner",
        search: SearchOptions | None = None,
        case: str = AUTO,
        g2p: FilePart | None = None,
        times: Times = "fine",
        annotations: Annotations | None = None,
    ):
        check_outputs(graphs, front_end.scorer.num_outputs, name)
        if times not in get_args(Times):
            raise ConfigError(f"{name}: times {times!r}; expected {' or '.join(get_args(Times))}")
        self.name = name
        self.front_end = front_end
        self.graphs = graphs
        self.case = check_case(case)
        self.times = times
        self.aligner = Aligner(graphs, beam=beam)
        self.goodness = PhoneGoodness(graphs, front_end.scorer.posterior_scale)
        self._audio = AudioInput(front_end, audio or AudioOptions())
        self._search = search or SearchOptions()
        self._g2p_file = g2p
        self.annotations = annotations or Annotations()
        cost = self.annotations.frame_cost
        self._frame_cost = FRAME_COST / min(1.0, self.goodness.scale) if cost is None else cost
        self._known_words = graphs.words or {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments of `load`, not models and graphs."""
        if self._loaded is None:
            raise ConfigError(f"{self.name}: made from parts; expected one of ForcedAligner.load, which can be pickled")
        return type(self).load, self._loaded

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
        case: str = AUTO,
        times: Times = "fine",
        annotations: Annotations | None = None,
    ) -> Self:
        """Open a bundle, without its graph and language model, or the models of `argonaut flatstart`.

        Parameters
        ----------
        path : str or Path
            A file NAME.argo or a directory, which `argonaut pack` made, the name of an installed bundle, such as en, or
            a directory of `argonaut flatstart`.
        dictionary : str, Path or sequence of Pronunciation, optional
            A file of any form; by default the dictionary of the bundle, whose pronunciation model guesses the words
            that it lacks.  Models of a flat start need one.
        beam, audio, case, times, annotations : optional
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
        path = find_model(path)
        settings: dict[str, Any] = {"case": case, "times": times, "annotations": annotations}
        parts, searching = open_alignment(path, dictionary)
        aligner = cls(**parts, beam=beam, audio=audio, name=f"{path}", **settings)
        aligner.searching = searching
        aligner._loaded = path.resolve(), dictionary, beam, audio, *settings.values()
        return aligner

    def labels(self, words: Sequence[str]) -> list[AnnotatedLabel]:
        """Return what is aligned for the words of a text, in the case in which they are looked up."""
        return labels_of(words, self._known_words, self._case(words), self.annotations)

    def kinds(self, words: Sequence[str]) -> list[Kind | None]:
        """Return of each word of a text what it is: None of words with a pronunciation, "unknown" of those without."""
        unknown = set(self.unknown(words))
        pairs = zip(words, self.labels(words))
        return [label.kind or ("unknown" if word in unknown else None) for word, label in pairs]

    def unknown(self, words: Sequence[str]) -> list[str]:
        """Return the words of a text that have no pronunciation, but for annotations."""
        known = (self.graphs.words or {}).keys() - self.graphs.loops
        pairs = zip(words, self.labels(words))
        return list(dict.fromkeys(word for word, label in pairs if not label.kind and label.name not in known))

    def completed(self, words: Sequence[str]) -> Self:
        """Return an aligner that can align some words, of which the dictionary may lack some.

        Parameters
        ----------
        words : sequence of str

        Returns
        -------
        ForcedAligner
            With guessed pronunciations, which it has as `guessed`, and any phones for what has none; this one if it
            has all words.
        """
        completed = self._guessing(words)
        graphs = with_annotations(completed.graphs, completed.labels(words), self._frame_cost)
        return completed if graphs is completed.graphs else completed._with(graphs)

    def _guessing(self, words: Sequence[str]) -> Self:
        """Return an aligner with guessed pronunciations of words that the dictionary lacks."""
        missing = [word for word in words_to_pronounce(self.labels(words)) if word not in (self.graphs.words or {})]
        if not missing or self._g2p is None:
            return self
        from decoder.g2p.completion import complete_dictionary  # slow to import

        guesses = complete_dictionary(self.graphs.dictionary or (), missing, self._g2p, phones=self.graphs.phones)
        if not guesses.entries:
            return self
        changed = self._with(self.graphs.with_words(guesses.for_decoding()))
        changed.guessed = tuple(guesses.entries)
        return changed

    def _with(self, graphs: TranscriptGraphs) -> Self:
        changed = object.__new__(type(self))  # copy.copy would load it again
        vars(changed).update(vars(self))
        changed.graphs = graphs
        changed.aligner = Aligner(graphs, beam=self.aligner.beam)
        return changed

    def _remarks(self, words: Sequence[str]) -> list[str]:
        guesses = [f"guessed pronunciation: {entry.word} {' '.join(entry.phones)}" for entry in self.guessed]
        return guesses + [f"no pronunciation: {word}; any phones" for word in self.unknown(words)]

    @functools.cached_property
    def _searching(self) -> Self | None:
        """The aligner of long recordings, if that is another one."""
        if self.searching is None:
            return None
        settings: dict[str, Any] = {"case": self.case, "times": self.times, "annotations": self.annotations}
        return type(self)(
            **self.searching(), **settings,
            beam=self.aligner.beam, audio=self._audio.options, name=self.name, search=self._search, g2p=self._g2p_file,
        )  # fmt: skip

    @functools.cached_property
    def _g2p(self) -> "G2P | None":
        if self._g2p_file is None:
            return None
        from decoder.g2p.model import G2P  # slow to import

        return G2P.load(self._g2p_file)

    def align(self, audio: Audio, text: str | Sequence[str], rate: float | None = None) -> Transcript:
        """Align one recording.

        Parameters
        ----------
        audio : str, Path, bytes, file, array (N,) or (N, channels)
            An audio file or samples, as for `Recognizer.transcribe`.
        text : str or sequence of str
            The words, which must be in the dictionary, but for their case, unless the bundle has a pronunciation model.
            Punctuation marks at both ends of the words of a str are removed.
        rate : float, optional
            Sample rate in Hz; required for samples, refused for a file.

        Returns
        -------
        Transcript
            Words and phones with times and confidences.  Inserted silence is a phone without a confidence.  Guessed
            pronunciations are among its `notes`.

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
        words = self.words_of(text)
        aligner = self.completed(words)
        recording = self._audio.open(audio, rate)
        return replace(aligner._align(recording, words), notes=(*recording.notes, *aligner._remarks(words)))

    def align_frames(self, audio: Audio, text: str | Sequence[str], rate: float | None = None) -> AlignedFrames:
        """Align one recording, and return the posterior probabilities of its frames, too.

        Parameters
        ----------
        audio, text, rate
            As for `align`.

        Returns
        -------
        AlignedFrames

        Raises
        ------
        ConfigError, GraphError, ShapeError, OSError
            As `align`.
        """
        words = self.words_of(text)
        aligner = self._guessing(words)
        recording = self._audio.open(audio, rate)
        scores, period = self._audio.scores(recording, recording.whole())
        alignment = aligner.aligner.align([label.name for label in aligner.labels(words)], scores)
        return AlignedFrames(
            words=tuple(words),
            phones=aligned_phones(alignment, self.goodness.phones),
            log_posteriors=self.goodness.log_posteriors(scores),
            period=period / TICKS_PER_SECOND,
            seconds=recording.seconds,
            notes=(*recording.notes, *aligner._remarks(words)),
        )

    def align_samples(self, samples: np.ndarray, rate: float, words: Sequence[str], where: str) -> Transcript:
        """Align samples as the readers of audio files return them.

        Parameters
        ----------
        samples : (N,) array
            One channel, on the scale of 16-bit integers.
        rate : float
            Sample rate in Hz.
        words : sequence of str
            The words, which must be in the dictionary, but for their case.
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
        words = self.words_of(words)
        return self._align(self._recording(samples, rate, where), words)

    def align_long(
        self,
        audio: Audio,
        text: str | Sequence[str],
        rate: float | None = None,
        competitors: Sequence[str] | None = None,
        options: LongOptions | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> LongAlignment:
        """Align a long recording with a transcript that may differ from it.

        Parameters
        ----------
        audio, text, rate
            As for `align`.
        competitors : sequence of str, optional
            Other words of the dictionary that may have been said; by default all of them, if they are at most 5000.
        options : LongOptions, optional
        threads : int, optional
            By default one per core.
        progress : callable, optional
            Called with the seconds that have been recognised, and those of the recording.

        Returns
        -------
        LongAlignment
            The words that were spoken, and the stretches where the transcript is damaged.

        Raises
        ------
        ConfigError, GraphError, OSError
            As `align`; ConfigError also for a dictionary without silence.

        Examples
        --------
        >>> found = ForcedAligner.load("digits.argo").align_long("speech.wav", "AB BA C")
        >>> [word.text for word in found.words]
        ['AB', 'C']
        >>> [(stretch.kind, stretch.words) for stretch in found.damage]
        [('deleted', ('BA',))]
        """
        words = self.words_of(text)
        recording = self._audio.open(audio, rate)
        return self.completed(words)._align_long(recording, words, competitors, options, threads, progress)

    def align_long_samples(
        self,
        samples: np.ndarray,
        rate: float,
        words: Sequence[str],
        where: str,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> LongAlignment:
        """Do as `align_long` for samples as of `align_samples`."""
        recording = self._recording(samples, rate, where)
        return self._align_long(recording, self.words_of(words), None, None, threads, progress)

    def _align_long(
        self,
        recording: Recording,
        words: list[str],
        competitors: Sequence[str] | None,
        options: LongOptions | None,
        threads: int | None,
        progress: Progress | None,
    ) -> LongAlignment:
        if self._searching is not None:
            searching = self._searching.completed(words)
            return searching._align_long(recording, words, competitors, options, threads, progress)
        options = options or LongOptions()
        samples = recording.whole()
        front_end = self.front_end
        source = AudioScores(
            *(samples, recording.target, front_end.config, front_end.scorer, options.shortest, options.longest),
            front_end.features,
        )
        if competitors is None:
            vocabulary = list(self.graphs.words or ())
            competitors = vocabulary if len(vocabulary) <= MOST_COMPETITORS else ()
        seconds = source.period / TICKS_PER_SECOND
        tell = None if progress is None else lambda done, total: progress(done * seconds, total * seconds)
        labels = [label.name for label in self.labels(words)]
        alignment = align_long(source, labels, self.graphs, competitors, self._search, options, threads, tell)
        return replace(
            alignment,
            delay=self._frame_times(recording).delay,
            words=tuple(word._replace(text=words[word.position]) for word in alignment.words),
            damage=tuple(part._replace(words=tuple(words[part.first : part.last])) for part in alignment.damage),
        )

    def _recording(self, samples: np.ndarray, rate: float, where: str) -> Recording:
        return Recording(where, rate, self._audio.target(rate, where), iter([samples]), len(samples))

    def words_of(self, text: str | Sequence[str]) -> list[str]:
        """Return the words of a text, as `align` does.

        Parameters
        ----------
        text : str or sequence of str

        Returns
        -------
        list of str
            In the case of the text.

        Raises
        ------
        ConfigError
            Without words.
        """
        if isinstance(text, str):
            known = InCase(self._known_words, self._case(text.split()), self.annotations)
            words = list(WordForms(known=known).split(text))
        else:
            words = [canonical(word) for word in text]
        if not words:
            raise ConfigError("no words to align; expected at least one")
        return words

    def _case(self, words: Sequence[str]) -> str:
        if self.case != AUTO:
            return self.case
        cuts = zip(words, map(self.annotations.cut_off, words))
        return best_case(Counter(cut.word if cut else word for word, cut in cuts), self._known_words)

    def _frame_times(self, recording: Recording) -> FrameTimes:
        times = self.front_end.times(recording.target)
        return times if self.times == "fine" else FrameTimes(times.period)

    def _align(self, recording: Recording, words: list[str]) -> Transcript:
        scores, _ = self._audio.scores(recording, recording.whole())
        labels = [label.name for label in self.labels(words)]
        alignment = self.aligner.align(labels, scores)
        end = recording.seconds * TICKS_PER_SECOND
        times = boundary_times(alignment, scores, self._frame_times(recording), end, self.goodness.scale)
        aligned = aligned_transcript(alignment, times, recording.seconds, self.goodness.of(alignment, scores))
        # A word that the dictionary writes in another way than it is called keeps that way.
        units = [unit for unit, _ in alignment.words if unit.output]
        texts = [words[unit.word] if unit.output == labels[unit.word] else unit.output for unit in units]
        spoken = (word._replace(text=text) for word, text in zip(aligned.spoken, texts, strict=True))
        return replace(aligned, spoken=tuple(spoken))
