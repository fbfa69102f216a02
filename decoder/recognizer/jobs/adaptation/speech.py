"""The speech to which a network is adapted: utterances of a corpus with features, and their alignment as labels."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from decoder.alignment.aligner import Aligner
from decoder.g2p.training import NO_WORD
from decoder.recognizer.front_end import FrontEnd
from decoder.recognizer.jobs.adaptation.options import SpeechOptions
from decoder.recognizer.jobs.adaptation.text import EVERY
from decoder.recognizer.jobs.alignment.aligning import RecordingAudio
from decoder.recognizer.jobs.alignment.corpora import in_case, open_corpus, with_channel
from decoder.recognizer.jobs.alignment.recordings import Recording, recordings_of
from decoder.recognizer.jobs.alignment.results import NO_TRANSCRIPT
from decoder.recognizer.recording import LONGEST
from decoder.search.batch import in_order
from readers.audio.audio_file import MIX, Channel
from readers.audio.header import read_audio_header
from readers.audio.resampling import check_rate, resample
from readers.common.arrays import Float32Array, Int64Array
from readers.common.faults import listed, one_line
from readers.common.report import Progress, RunReport
from readers.corpora.corpus import Corpus, Utterance
from readers.errors import ArgonautError, ConfigError, ShapeError


@dataclass(frozen=True)
class SpokenUtterance:
    """An utterance that was spoken.

    Attributes
    ----------
    name, speaker : str
    words : tuple of str
    seconds : float
    features : (dim, T) float32
    scores : (K, T') float32
        Of the bundle's network.
    labels : (T',) int64 or None
        The network's output in each column; None if the words could not be aligned.
    fault : str
        Why not.
    """

    name: str
    speaker: str
    words: tuple[str, ...]
    seconds: float
    features: Float32Array
    scores: Float32Array
    labels: Int64Array | None
    fault: str = ""


class AdaptationSpeech:
    """The utterances of a corpus, some of which are held out.

    Parameters
    ----------
    source : Path
        Of any form that `argonaut align` takes.
    options : SpeechOptions
    known : collection of str
        Words of the dictionary.  Others in brackets, such as [noise], are left out.

    Raises
    ------
    ConfigError
        For speakers to be held out that are not in the corpus, and if nothing is left for the training.
    ArgonautError, OSError
        For a corpus that cannot be read.

    Attributes
    ----------
    report : RunReport
        Utterances that were read, and those that were not, with the reasons.
    held_out : frozenset of str
        Names of the utterances that are held out.
    transcripts : list of tuple of str
        Of the utterances that are not held out.
    """

    def __init__(self, source: Path, options: SpeechOptions, known: Collection[str]):
        corpus, case = open_corpus(source, {*known}, options.case, options.tiers)
        self.report = RunReport("utterances", lost=[*corpus.report.lost])
        utterances = [utterance for each in in_case(corpus, case).utterances if (utterance := _spoken(each, known))]
        spoken = {utterance.name for utterance in utterances}
        for utterance in corpus.utterances:
            if utterance.name not in spoken:
                self.report.skip(utterance.name, NO_TRANSCRIPT)
        self.held_out = _held_out(utterances, options.held_out, source) if utterances else frozenset[str]()
        self.transcripts = [each.words for each in utterances if each.name not in self.held_out and each.words]
        if not self.transcripts:
            losses = [] if utterances else self.report.lost[:1]
            reasons = "".join(f": {name}: {reason}" for name, _, reason in losses)
            raise ConfigError(f"{source}: no utterances for the training{reasons}; expected some with transcripts")
        self._recordings = recordings_of(
            with_channel(Corpus(tuple(utterances), headers=corpus.headers), options.channel), source
        )
        self._channel: Channel = MIX if options.channel == MIX else None

    def align(self, front_end: FrontEnd, aligner: Aligner, progress: Progress) -> list[SpokenUtterance]:
        """Compute features, scores and labels of all utterances that can be read; the report lists the others."""

        def listen(recording: Recording) -> list[SpokenUtterance | tuple[str, str]]:
            header = read_audio_header(recording.audio)
            audio = RecordingAudio(recording.audio, header)
            heard: list[SpokenUtterance | tuple[str, str]] = []
            for utterance in recording.utterances:
                try:
                    heard.append(self._listen(utterance, audio, header.seconds, front_end, aligner))
                except (ArgonautError, OSError) as fault:
                    heard.append((utterance.name, one_line(fault)))
            return heard

        spoken = []
        for number, (recording, heard) in enumerate(in_order(listen, self._recordings), 1):
            if isinstance(heard, Exception):
                for utterance in recording.utterances:
                    self.report.fail(utterance.name, one_line(heard))
                continue
            for result in heard:
                if not isinstance(result, SpokenUtterance):
                    self.report.fail(*result)
                    continue
                spoken.append(result)
                if result.fault:
                    self.report.mark(result.name, "unaligned", f"{result.fault}; its errors count all the same")
                else:
                    self.report.done()
            progress(number, len(self._recordings), stage="align", unit="recordings")
        return spoken

    def _listen(
        self, utterance: Utterance, audio: RecordingAudio, seconds: float, front_end: FrontEnd, aligner: Aligner
    ) -> SpokenUtterance:
        end = seconds if utterance.end is None else min(utterance.end, seconds)
        if end - utterance.start > LONGEST:
            raise ShapeError(f"{end - utterance.start:.0f} s; expected at most {LONGEST:g} s: utterances with times")
        words = utterance.words or ()
        channel: Channel = self._channel if utterance.channel is None else utterance.channel
        samples, rate = audio.read(utterance.start, end, channel)
        target = front_end.target_rate(rate, str(utterance.audio))
        if target != rate:
            check_rate(rate, str(utterance.audio))
            samples = resample(samples, rate, target)
        features = front_end.features(samples, target)
        scores = front_end.scorer.score(features)
        labels = None
        reason = ""
        try:
            alignment = aligner.align(words, scores)
        except ArgonautError as fault:
            if utterance.name not in self.held_out:  # whose errors count without labels, too
                raise
            reason = one_line(fault)
        else:
            rows = alignment.graph.row[alignment.position]
            labels = np.repeat(rows, alignment.end - alignment.start).astype(np.int64)
        return SpokenUtterance(
            utterance.name, utterance.speaker, words, end - utterance.start, features, scores, labels, reason
        )


def _spoken(utterance: Utterance, known: Collection[str]) -> Utterance | None:
    """Return an utterance without marks such as [noise]; None if no words are left."""
    words = tuple(word for word in utterance.words or () if word in known or not NO_WORD.fullmatch(word))
    return replace(utterance, words=words) if words else None


def _held_out(utterances: Iterable[Utterance], speakers: Collection[str], source: Path) -> frozenset[str]:
    """Return the names of the utterances of some speakers or, without these, of every tenth one; at least of one."""
    if not speakers:
        names = [utterance.name for utterance in utterances]
        return frozenset(names[EVERY - 1 :: EVERY] or names[1::2][-1:])
    present = {utterance.speaker for utterance in utterances}
    if absent := sorted({*speakers} - present):
        raise ConfigError(
            f"{source}: no speaker {listed(absent)}, to be held out; expected some of {listed(sorted(present))}"
        )
    return frozenset(utterance.name for utterance in utterances if utterance.speaker in speakers)
