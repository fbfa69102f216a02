"""The recogniser: one object from audio to words, however it was assembled."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from acoustic.scoring.window_scorer import WindowScorer
from decoder.alignment.aligner import Aligner, check_outputs
from decoder.alignment.interpolation import FrameTimes, boundary_times
from decoder.graph.compiled_graph import DecodingGraph
from decoder.graph.transcript import TranscriptGraphs
from decoder.lattices.posteriors import calibrated
from decoder.lm.language_model import LanguageModel
from decoder.recognizer.assembly import (
    LATTICE_BEAM,
    aligning_network,
    has_tables,
    lacking,
    network_alignment,
    open_bundle,
    open_second_pass,
    read_calibration,
    recognising_network,
    transcript_graphs,
)
from decoder.recognizer.bundle import G2P_MODEL, Bundle
from decoder.recognizer.front_end import FrontEnd
from decoder.recognizer.grammar import Grammar
from decoder.recognizer.long_recording import transcribe_long
from decoder.recognizer.recording import Audio, AudioInput, AudioOptions, Progress, Recording
from decoder.recognizer.transcript import Transcript, aligned_transcript, recognised_phones, transcript_of
from decoder.recognizer.variants import Variants
from decoder.results.live_recognition import Endpoint, Recognition
from decoder.search.batch import in_order
from decoder.search.decoder import Decoder
from decoder.search.options import NEW_SENTENCE_COST, SearchOptions
from features import FeatureConfig, RunningMean
from readers.errors import ConfigError

if TYPE_CHECKING:
    from decoder.recognizer.forced_aligner import ForcedAligner
    from features.ivectors.model import IvectorModel

PAUSES = Endpoint()


class Recognizer(Variants):
    """A recogniser: acoustic model, decoding graph, language model, features and search options.

    `Recognizer.load` opens a bundle, which has all of them; the constructor takes the parts one by one.  Any number of
    threads may use one recogniser.  One that was loaded can be pickled, by the path of its bundle: processes that share
    the work open the bundle themselves.

    Parameters
    ----------
    model : WindowScorer
        The acoustic model, such as `AcousticScorer("net.dnn")`.
    graph : DecodingGraph
        See `decoder.load_graph`.
    features : FeatureConfig
        How features are computed from audio.
    lm : LanguageModel, optional
        Without one, words have only the costs in the graph.
    cntkmap : mapping of str to int, optional
        Network output of each HMM state; by default in the order of the graph's states.
    options : SearchOptions, optional
        By default with a lattice beam of 9, from which confidences are computed, and several sentences in a recording.
    alignment : TranscriptGraphs, optional
        What `align` needs.
    sample_rate : float, optional
        Of the audio of the training in Hz, for a model that does not know it.
    name : str
        For messages.
    ivectors : IvectorModel, optional
        For an acoustic model that takes i-vectors.

    Attributes
    ----------
    calibration : Calibration or None
        From posterior probabilities of words to their confidences; None without one, and after `with_grammar`.
    guessed : tuple of Pronunciation
        The pronunciations that were guessed of new words, hotwords and words of a grammar.
    notes : tuple of str
        What there is to say about new words: that the graph was built anew, and why.

    Raises
    ------
    ArgonautError
        For parts that do not fit together.

    Examples
    --------
    >>> recognizer = Recognizer.load("digits.argo")
    >>> transcript = recognizer.transcribe("speech.wav")
    >>> transcript.text
    'AB C'
    >>> [word.text for word in transcript.words if word.confidence > 0.5]
    ['AB', 'C']
    """

    def __init__(
        self,
        model: WindowScorer,
        graph: DecodingGraph,
        features: FeatureConfig,
        lm: LanguageModel | None = None,
        cntkmap: Mapping[str, int] | None = None,
        options: SearchOptions | None = None,
        alignment: TranscriptGraphs | None = None,
        sample_rate: float | None = None,
        name: str = "recognizer",
        ivectors: "IvectorModel | None" = None,
    ):
        front_end = FrontEnd(features, model, name, sample_rate, ivectors=ivectors)
        options = options or SearchOptions(lattice_beam=LATTICE_BEAM, new_sentence=NEW_SENTENCE_COST)
        decoder = Decoder(graph, lm, options, cntkmap, name)
        decoder.check_outputs(model.num_outputs, model.source)
        self._assemble(name, front_end, decoder, alignment)

    def _assemble(
        self,
        name: str,
        front_end: FrontEnd,
        decoder: Decoder,
        alignment: TranscriptGraphs | None = None,
        bundle: Bundle | None = None,
    ) -> None:
        self.name = name
        self.front_end = front_end
        self.decoder = decoder
        self._audio = AudioInput(front_end, AudioOptions())
        self._alignment = alignment
        self._bundle = bundle
        self.grammar: Grammar | None = None
        self.calibration = None if bundle is None else read_calibration(bundle)
        self.second_pass = None if bundle is None else open_second_pass(bundle)

    @classmethod
    def load(cls, path: str | Path, verify: bool | None = None) -> Self:
        """Open a bundle.

        Parameters
        ----------
        path : str or Path
            A file NAME.argo or a directory, which `argonaut pack` made, or the name of an installed bundle, such as en
            (see `argonaut models`), unless there is a file of that name.  Its graph and language model stay in the file
            and are mapped into memory, so that processes share them.
        verify : bool, optional
            Whether to compare the checksums, for which every byte is read; by default when it is first opened.

        Returns
        -------
        Recognizer

        Raises
        ------
        FormatError
            For a file that is no bundle, and for a damaged one.
        OSError
        """
        bundle = Bundle.open(path, verify)
        recognizer = object.__new__(cls)
        recognizer._assemble(f"{bundle.path}", *open_bundle(bundle), bundle=bundle)
        return recognizer

    @property
    def bundle(self) -> Bundle | None:
        """The bundle from which it was loaded; None if it was made from parts."""
        return self._bundle

    def can_align(self) -> bool:
        """Return whether there is what `align` needs; raises ArgonautError if it is damaged or does not fit."""
        can_search = self._has_tables()
        if can_search:
            check_outputs(self._transcript_graphs(), self.front_end.scorer.num_outputs, self.name)
        if not can_search and (self._bundle is None or self._bundle.description.aligner is None):
            return False
        self.aligner()
        return True

    def _has_tables(self) -> bool:
        """Return whether transcripts can be compiled for the network of the search."""
        return self._alignment is not None or (self._bundle is not None and has_tables(self._bundle))

    def transcribe(self, audio: Audio, rate: float | None = None, progress: Progress | None = None) -> Transcript:
        """Recognise one recording.

        Audio of a higher sample rate than that of the training is resampled.  A recording of more than two minutes is
        divided at pauses and has no lattice (see `AudioOptions.longest`).

        Parameters
        ----------
        audio : str, Path, bytes, file, array (N,) or (N, channels)
            An audio file (WAV, FLAC, SPHERE, MP3, ...): its name, its content, or itself, open in binary mode; `-` for
            standard input; or samples, int16, or floating point from -1 to 1.
        rate : float, optional
            Sample rate in Hz; required for samples, refused for a file.
        progress : callable, optional
            Called during a long recording with the seconds that are done, and those of the recording or None.

        Returns
        -------
        Transcript

        Raises
        ------
        ArgonautError
            For audio that cannot be read, or does not fit the model.
        OSError

        Examples
        --------
        >>> Recognizer.load("digits.argo").transcribe("speech.wav").text
        'AB C'
        """
        recording = self._audio.open(audio, rate)
        samples = recording.whole(self._audio.options.longest)
        if samples is None:
            transcript = transcribe_long(recording, self.front_end, self.decoder, self._recognize, progress)
        else:
            transcript = self._recognize(recording, samples)
        silence = [] if transcript.spoken or transcript.reason else [f"no words; {recording.loudness}"]
        return replace(transcript, notes=(*recording.notes, *silence))

    def transcribe_many(
        self, paths: Iterable[str | Path], threads: int | None = None
    ) -> Iterator[tuple[str | Path, Transcript | Exception]]:
        """Recognise many files in threads.

        Parameters
        ----------
        paths : iterable of str or Path
            Read as needed, a few per thread ahead of the results.
        threads : int, optional
            By default one per core.

        Yields
        ------
        (path, transcript) : tuple
            In the order of the paths.  The transcript is an ArgonautError or OSError if the file cannot be recognised.

        Examples
        --------
        >>> [transcript.text for path, transcript in Recognizer.load("digits.argo").transcribe_many(["speech.wav"])]
        ['AB C']
        """
        if isinstance(paths, (str, Path)):
            raise ConfigError(f"{paths}: one name; expected a list of paths")
        return in_order(self.transcribe, paths, threads)

    def stream(
        self,
        rate: float,
        endpoint: Endpoint | None = PAUSES,
        mean: RunningMean | None = None,
        block: int = 10,
    ) -> Recognition:
        """Begin to recognise audio while it arrives.

        Parameters
        ----------
        rate : float
            Sample rate in Hz; audio of a higher rate than that of the training is resampled.
        endpoint : Endpoint, optional
            When an utterance ends.  None: at the end of the audio only.
        mean : RunningMean, optional
            For features with _Z and without SPEECHMEAN: which mean is subtracted, since that of the whole audio is not
            known yet.  By default that of the last 600 frames.
        block : int
            Frames between two looks at the words.

        Returns
        -------
        Recognition
            Its `push(samples)` and `finish()` return the events; samples as in `transcribe`.

        Raises
        ------
        ConfigError
            For a sample rate that does not fit the model.

        Examples
        --------
        >>> stream = Recognizer.load("digits.argo").stream(16000)
        >>> events = stream.push(samples) + stream.finish()
        >>> [event.text for event in events if event.is_final]
        ['AB C']
        """
        target = self._audio.target(rate, "stream")
        block = self.front_end.block(block)
        stages = [*self._audio.stages(rate), *self.front_end.stages(target, mean or RunningMean(), block)]
        columns = self.front_end.scorer.num_columns(block)
        period = self.front_end.period(target)
        parse_slots = None if self.grammar is None else self.grammar.slots
        judge = None if self.grammar is None else self.grammar.judge
        second_pass = None if self.second_pass is None else self.second_pass.rescored
        return Recognition(
            self.decoder, stages, period, endpoint, columns, self.calibration, parse_slots, second_pass, judge
        )

    def align(self, audio: Audio, text: str | Sequence[str], rate: float | None = None) -> Transcript:
        """Find when known words were spoken.

        Parameters
        ----------
        audio : str, Path, bytes, file or array
            As for `transcribe`.
        text : str or sequence of str
            The words, which must be in the dictionary.
        rate : float, optional
            As for `transcribe`.

        Returns
        -------
        Transcript
            With times and confidences of words and phones, see `ForcedAligner`.

        Raises
        ------
        GraphError
            For unknown words.
        ConfigError
            For a recogniser without dictionary and tables of models.
        ShapeError
            For audio that is too short for the words.

        Examples
        --------
        >>> [word.text for word in Recognizer.load("digits.argo").align("speech.wav", "AB C").words]
        ['AB', 'C']
        """
        return self.aligner().align(audio, text, rate)

    def aligner(self) -> "ForcedAligner":
        """Return the aligner of which `align` is a short form.

        It shares the acoustic model, unless the bundle has a network that aligns.

        Returns
        -------
        ForcedAligner
            The same one at each call.

        Raises
        ------
        ConfigError
            For a recogniser without dictionary and tables of models.
        """
        if self._aligner is None:
            self._aligner = self._open_aligner()
        return self._aligner

    def _open_aligner(self) -> "ForcedAligner":
        from decoder.recognizer.forced_aligner import ForcedAligner  # only what aligns loads it

        bundle = self._bundle
        has_network = bundle is not None and bundle.description.aligner is not None
        parts: dict[str, Any] = {}
        searching: Callable[[], dict[str, Any]] | None = None
        if self._has_tables() or not has_network:
            parts = {"front_end": self.front_end, "graphs": self._transcript_graphs()}
        if bundle is not None and has_network:
            dictionary = parts["graphs"].dictionary if parts else None  # with added words
            searching = functools.partial(dict, parts) if parts else None
            parts = network_alignment(bundle, aligning_network(bundle), dictionary)
        aligner = ForcedAligner(
            **parts,
            audio=self._audio.options,
            name=self.name,
            search=self.decoder.options,
            g2p=None if bundle is None else bundle.parts.get(G2P_MODEL),
        )
        aligner.searching = searching
        return aligner

    def _recognize(self, recording: Recording, samples: np.ndarray, start: float = 0.0) -> Transcript:
        scores, period, result = self._audio.search(recording, samples, self.decoder)
        transcript = transcript_of(result, self.decoder, period, recording.seconds, self.calibration, start)
        rescored = None if self.second_pass is None else self.second_pass.rescored(result, period)
        if rescored is not None:
            lattice = rescored.lattice
            spoken = tuple(calibrated(rescored.words, self.calibration))
            transcript = replace(transcript, spoken=spoken, make_lattice=lambda: lattice)
        if self.goodness is not None:
            words = [word.text for word in transcript.spoken]
            if words == result.text:
                phones = recognised_phones(result, period, self.goodness, scores)
            else:  # of the second pass
                alignment = Aligner(self._transcript_graphs()).align(words, scores)
                times = boundary_times(alignment, scores, FrameTimes(period), recording.seconds)
                goodness = self.goodness.of(alignment, scores)
                phones = aligned_transcript(alignment, times, recording.seconds, goodness).phones
            transcript = replace(transcript, phones=phones)
        return transcript if self.grammar is None else self.grammar.judged(transcript, result, scores)

    def _transcript_graphs(self, purpose: str = "alignment") -> TranscriptGraphs:
        """Return what alignment needs; it is read from the bundle when it is first needed."""
        if self._alignment is None:
            if self._bundle is None or not self._has_tables():
                members = () if self._bundle is None else self._bundle.parts
                raise ConfigError(f"{self.name}: {lacking(members, purpose)}")
            self._alignment = transcript_graphs(self._bundle, recognising_network(self._bundle))
        return self._alignment


load = Recognizer.load
