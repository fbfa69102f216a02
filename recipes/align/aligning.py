"""Aligns the utterances of a recording."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from decoder.recognizer.forced_aligner import ForcedAligner
from decoder.recognizer.transcript import Word
from readers.audio.audio_file import Channel, read_audio
from readers.audio.header import AudioHeader, read_audio_header
from readers.common.audio_format import HEAD_SIZE, MP3, audio_format
from readers.corpora.corpus import Utterance
from readers.errors import ArgonautError
from readers.results.timed_words import TimedWord
from recipes.align.recordings import Recording
from recipes.align.results import DECIMALS, AlignedRecording, AlignedUtterance


class RecordingAligner:
    """Aligns recordings; any number of threads may call it.

    Parameters
    ----------
    aligner : ForcedAligner
        Its channel is that of recordings whose utterances name none.
    """

    def __init__(self, aligner: ForcedAligner):
        self.aligner = aligner

    def __call__(self, recording: Recording) -> AlignedRecording:
        """Align a recording.

        Utterances that cannot be aligned have a reason.  Raises ArgonautError or OSError if the audio cannot be read.
        """
        header = read_audio_header(recording.audio)
        audio = _Audio(recording.audio, header)
        found = [self._utterance(one, audio, header.seconds) for one in recording.utterances]
        return AlignedRecording(recording.name, str(recording.audio), header.seconds, tuple(found))

    def _channel(self, utterance: Utterance) -> Channel:
        return self.aligner.channel if utterance.channel is None else utterance.channel

    def _utterance(self, utterance: Utterance, audio: "_Audio", seconds: float) -> AlignedUtterance:
        start, end = utterance.start, seconds if utterance.end is None else min(utterance.end, seconds)
        place = utterance.name, utterance.speaker, utterance.channel, round(start, DECIMALS), round(end, DECIMALS)
        try:
            if not utterance.words:
                return AlignedUtterance(*place, (), (), "no transcript")
            if start >= end:
                return AlignedUtterance(*place, (), (), f"begins at {start:g} s, after the end of the recording")
            samples, rate = audio.read(start, end, self._channel(utterance))
            aligned = self.aligner.align_samples(samples, rate, utterance.words, utterance.name)
        except ArgonautError as fault:
            return AlignedUtterance(*place, (), (), str(fault).removeprefix(f"{utterance.name}: "))
        spoken = [phone for phone in aligned.phones if phone.confidence is not None]  # without inserted silence
        return AlignedUtterance(*place, _timed(aligned.words, start), _timed(spoken, start))


class _Audio:
    """Reads parts of a recording; MP3, of which only the whole can be decoded, is decoded once for each channel."""

    def __init__(self, path: Path, header: AudioHeader):
        with path.open("rb") as file:
            self.divides = audio_format(file.read(HEAD_SIZE)) != MP3
        self.path, self.header = path, header
        self.whole: dict[Channel, np.ndarray] = {}

    def read(self, start: float, end: float, channel: Channel) -> tuple[np.ndarray, int]:
        """Return samples and rate of a part, in seconds.  Raises FormatError and OSError as `read_audio`."""
        rate = self.header.rate
        first, stop = round(start * rate), min(round(end * rate), self.header.num_samples)
        if self.divides:
            whole = first == 0 and stop == self.header.num_samples
            return read_audio(self.path, channel, None, first, None if whole else max(first, stop - 1))
        if channel not in self.whole:
            self.whole[channel], _ = read_audio(self.path, channel)
        return self.whole[channel][first:stop], rate


def _timed(words: Iterable[Word], start: float) -> tuple[TimedWord, ...]:
    return tuple(
        TimedWord(one.text, round(start + one.start, DECIMALS), round(start + one.end, DECIMALS), one.confidence)
        for one in words
    )
