"""Aligns the utterances of a recording."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from decoder.recognizer.forced_aligner import ForcedAligner
from decoder.recognizer.jobs.alignment.recordings import Recording
from decoder.recognizer.jobs.alignment.results import DECIMALS, NO_TRANSCRIPT
from decoder.recognizer.recording import LONGEST
from decoder.results.alignment import AlignedUtterance, Alignment, Damage
from readers.audio.audio_file import MIX, Channel, read_audio
from readers.audio.header import AudioHeader, read_audio_header
from readers.common.audio_format import HEAD_SIZE, MP3, audio_format
from readers.corpora.corpus import Utterance
from readers.errors import ArgonautError, AudioWarning, FormatError
from readers.htk.units import TICKS_PER_SECOND
from readers.results.timed_words import Word


class RecordingAligner:
    """Aligns recordings; any number of threads may call it.

    Parameters
    ----------
    aligner : ForcedAligner
        Its channel is that of recordings whose utterances name none.
    longest : float
        Seconds; transcripts of longer utterances may differ from the recording.
    threads : int
        For each long utterance.
    progress : callable, optional
        Called with a name and the seconds of a long utterance that have been recognised.
    """

    def __init__(
        self,
        aligner: ForcedAligner,
        longest: float = LONGEST,
        threads: int = 1,
        progress: Callable[[str, float], None] | None = None,
    ):
        self.aligner = aligner
        self.longest = longest
        self.threads = threads
        self.progress = progress

    def __call__(self, recording: Recording) -> Alignment:
        """Align a recording.

        Utterances that cannot be aligned have a reason.  Raises ArgonautError or OSError if the audio cannot be read.
        """
        header = read_audio_header(recording.audio)
        if header.channels > 1 and any(self._channel(utterance) is None for utterance in recording.utterances):
            raise FormatError(
                f"{recording.audio}: {header.channels} channels; expected one; choose it by --channel "
                f"{', '.join(map(str, range(header.channels)))} or {MIX}"
            )
        for note in header.notes:
            warnings.warn(f"{recording.audio}: {note}", AudioWarning, stacklevel=2)
        audio = RecordingAudio(recording.audio, header)
        utterances = [self._utterance(utterance, audio, header.seconds) for utterance in recording.utterances]
        return Alignment(recording.name, str(recording.audio), header.seconds, tuple(utterances))

    def _channel(self, utterance: Utterance) -> Channel:
        return self.aligner.channel if utterance.channel is None else utterance.channel

    def _utterance(self, utterance: Utterance, audio: "RecordingAudio", seconds: float) -> AlignedUtterance:
        start, end = utterance.start, seconds if utterance.end is None else min(utterance.end, seconds)
        identity = (
            utterance.name,
            utterance.speaker,
            utterance.channel,
            round(start, DECIMALS),
            round(end, DECIMALS),
        )
        try:
            if not utterance.words:
                return AlignedUtterance(*identity, (), (), NO_TRANSCRIPT)
            if start >= end:
                return AlignedUtterance(*identity, (), (), f"begins at {start:g} s, after the end of the recording")
            aligner = self.aligner.completed(utterance.words)
            samples, rate = audio.read(start, end, self._channel(utterance))
            has_words = any(label.name not in aligner.graphs.loops for label in aligner.labels(utterance.words))
            if end - start > self.longest and has_words:
                return self._long(aligner, AlignedUtterance(*identity, (), ()), utterance.words, samples, rate)
            aligned = aligner.align_samples(samples, rate, utterance.words, utterance.name)
        except ArgonautError as fault:
            return AlignedUtterance(*identity, (), (), str(fault).removeprefix(f"{utterance.name}: "))
        # Inserted silence has no confidence.
        phones, states = (
            _timed((label for label in labels if label.confidence is not None), start, end)
            for labels in (aligned.phones, aligned.states)
        )
        return AlignedUtterance(*identity, _timed(aligned.words, start, end), phones, states=states)

    def _long(
        self,
        aligner: ForcedAligner,
        utterance: AlignedUtterance,
        words: Sequence[str],
        samples: np.ndarray,
        rate: int,
    ) -> AlignedUtterance:
        """Align a long utterance with the words of its transcript that were spoken."""

        def tell(done: float, _: float | None) -> None:
            if self.progress is not None:
                self.progress(utterance.name, done)

        alignment = aligner.align_long_samples(
            samples, rate, words, utterance.name, threads=self.threads, progress=tell
        )

        def at(frame: int) -> float:
            ticks = frame * alignment.period + alignment.delay if frame else 0
            return min(round(utterance.start + ticks / TICKS_PER_SECOND, DECIMALS), utterance.end)

        return utterance._replace(
            words=tuple(Word(word.text, at(word.start), at(word.end), word.confidence) for word in alignment.words),
            phones=tuple(
                Word(phone.text, at(phone.start), at(phone.end), phone.confidence)
                for phone in alignment.phones
                if phone.position >= 0
            ),
            damage=tuple(
                Damage(
                    at(stretch.start),
                    at(stretch.end),
                    stretch.kind,
                    " ".join(stretch.words),
                    " ".join(stretch.recognised),
                )
                for stretch in alignment.damage
            ),
        )


class RecordingAudio:
    """Reads parts of a recording; MP3, of which only the whole can be decoded, is decoded once for each channel."""

    def __init__(self, path: Path, header: AudioHeader):
        with path.open("rb") as file:
            self.divides = audio_format(file.read(HEAD_SIZE)) != MP3
        self.path = path
        self.header = header
        self.whole: dict[Channel, np.ndarray] = {}

    def read(self, start: float, end: float, channel: Channel) -> tuple[np.ndarray, int]:
        """Return samples and rate of a part, in seconds.  Raises FormatError and OSError as `read_audio`."""
        rate = self.header.rate
        first = round(start * rate)
        stop = min(round(end * rate), self.header.num_samples)
        if self.divides:
            is_whole = first == 0 and stop == self.header.num_samples
            return read_audio(self.path, channel, None, first, None if is_whole else max(first, stop - 1), [])
        if channel not in self.whole:
            self.whole[channel], _ = read_audio(self.path, channel, notes=[])
        return self.whole[channel][first:stop], rate


def _timed(words: Iterable[Word], start: float, end: float) -> tuple[Word, ...]:
    """Return words of an utterance with times in the recording; the last frame may end after the utterance."""

    def at(time: float) -> float:
        return round(min(start + time, end), DECIMALS)

    return tuple(Word(word.text, at(word.start), at(word.end), word.confidence) for word in words)
