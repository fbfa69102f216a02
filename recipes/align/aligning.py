"""Aligns the utterances of a recording."""

from collections.abc import Iterable

import numpy as np

from decoder.recognizer.forced_aligner import ForcedAligner
from decoder.recognizer.transcript import Word
from readers.audio.audio_file import Channel, read_audio
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
        audio: dict[Channel, tuple[np.ndarray, int]] = {}
        for channel in dict.fromkeys(self._channel(one) for one in recording.utterances):
            audio[channel] = read_audio(recording.audio, channel)
        samples, rate = next(iter(audio.values()))
        found = [self._utterance(one, *audio[self._channel(one)]) for one in recording.utterances]
        return AlignedRecording(recording.name, str(recording.audio), len(samples) / rate, tuple(found))

    def _channel(self, utterance: Utterance) -> Channel:
        return self.aligner.channel if utterance.channel is None else utterance.channel

    def _utterance(self, utterance: Utterance, samples: np.ndarray, rate: int) -> AlignedUtterance:
        start = utterance.start
        end = len(samples) / rate if utterance.end is None else min(utterance.end, len(samples) / rate)
        place = utterance.name, utterance.speaker, utterance.channel, round(start, DECIMALS), round(end, DECIMALS)
        part = samples[round(start * rate) : round(end * rate)]
        try:
            if not utterance.words:
                return AlignedUtterance(*place, (), (), "no transcript")
            if not part.size:
                return AlignedUtterance(*place, (), (), f"begins at {start:g} s, after the end of the recording")
            aligned = self.aligner.align_samples(part, rate, utterance.words, utterance.name)
        except ArgonautError as fault:
            return AlignedUtterance(*place, (), (), str(fault).removeprefix(f"{utterance.name}: "))
        spoken = [phone for phone in aligned.phones if phone.confidence is not None]  # without inserted silence
        return AlignedUtterance(*place, _timed(aligned.words, start), _timed(spoken, start))


def _timed(words: Iterable[Word], start: float) -> tuple[TimedWord, ...]:
    return tuple(
        TimedWord(one.text, round(start + one.start, DECIMALS), round(start + one.end, DECIMALS), one.confidence)
        for one in words
    )
