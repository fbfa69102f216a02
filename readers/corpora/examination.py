"""Examines a corpus before anything is trained on it: levels of the audio, durations, words without a pronunciation."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from readers.audio.audio_file import MIX, Channel, read_audio
from readers.audio.header import AudioHeader
from readers.audio.sound import FULL_SCALE
from readers.common.audio_format import HEAD_SIZE, MP3, audio_format
from readers.common.faults import counted, is_shortage
from readers.common.jobs.runner import Runner, thread_runner
from readers.common.jobs.worker import reason_of
from readers.common.report import IRREGULAR, RunReport
from readers.corpora.corpus import Corpus, Utterance
from readers.corpora.corpus_builder import Progress
from readers.errors import ArgonautError, FormatError

PHONE_SECONDS = 0.03  # of a phone at least: three HMM states of a frame of 10 ms each
PIECE_SECONDS = 120  # of a long recording, which is read piece by piece
CLIPPED_SAMPLES, CLIPPED_SHARE = 10, 1e-4  # samples at full scale: at least so many, and this share of all
SILENT_PEAK = FULL_SCALE / 1000  # -60 dB
MOST_KNOWN_BY_CASE = 0.5  # share of the unknown words that another case must make known to be suggested


class Share(NamedTuple):
    """What belongs to a speaker, or to the whole corpus: utterances, seconds of audio, words of the transcripts."""

    utterances: int
    seconds: float
    words: int


@dataclass(frozen=True)
class Examination:
    """Facts about a corpus.

    Attributes
    ----------
    total : Share
    speakers : dict of str to Share
        In the order of their names.
    rates, channels : dict of int to int
        Number of audio files by sample rate in Hz, and by number of channels.
    no_channel : int
        Number of utterances in files with several channels of which none is chosen.
    no_transcript, no_words : tuple of str
        Utterances without a transcript, and with an empty one.
    clipped, silent, too_short : dict of str to str
        Utterances whose samples reach the full scale, are nearly zero, or are too short for their words, with details.
    num_words : int
        Number of different words.
    unknown : dict of str to int or None
        Words without a pronunciation and how often they occur, most frequent first; None without a dictionary.
    better_case : str or None
        "upper" or "lower", if most of the unknown words are in the dictionary in this case.
    """

    total: Share
    speakers: dict[str, Share]
    rates: dict[int, int]
    channels: dict[int, int]
    no_channel: int
    no_transcript: tuple[str, ...]
    no_words: tuple[str, ...]
    clipped: dict[str, str]
    silent: dict[str, str]
    too_short: dict[str, str]
    num_words: int
    unknown: dict[str, int] | None
    better_case: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the facts as values of JSON."""
        facts = dataclasses.asdict(self)
        facts["total"] = self.total._asdict()
        facts["speakers"] = {speaker: share._asdict() for speaker, share in self.speakers.items()}
        return facts

    def remarks(self) -> dict[str, str]:
        """Return the facts as short texts, name -> text, for a RunReport."""
        lines = {
            "audio": f"{_duration(self.total.seconds)} of {counted(len(self.speakers), 'speaker')}",
            "sample rates": ", ".join(f"{rate} Hz ({counted(count, 'file')})" for rate, count in self.rates.items())
            or "none",
            "channels": ", ".join(f"{number} ({counted(count, 'file')})" for number, count in self.channels.items())
            or "none",
            "words": f"{self.total.words}, {self.num_words} different",
        }
        if self.no_channel:
            utterances = counted(self.no_channel, "utterance")
            lines["channels"] += f"; choose one for {utterances} with argonaut hcopy --channel"
        if self.unknown is not None:
            count = sum(self.unknown.values())
            lines["without a pronunciation"] = (
                f"{counted(len(self.unknown), 'word')}, {counted(count, 'time')}" if count else "none"
            )
        if self.better_case:
            lines["case"] = f"most of these are in the dictionary in another case; use --case {self.better_case}"
        lines |= {
            f"speaker {speaker}": f"{counted(share.utterances, 'utterance')}, {_duration(share.seconds)}, "
            f"{counted(share.words, 'word')}"
            for speaker, share in self.speakers.items()
        }
        return lines


def examine(
    corpus: Corpus,
    phones: Mapping[str, int] | None = None,
    guessed: Mapping[str, int] | None = None,
    decode: bool = True,
    progress: Progress | None = None,
    runner: Runner | None = None,
) -> tuple[Corpus, Examination]:
    """Decode all audio of a corpus, and compare its words with a dictionary.

    Parameters
    ----------
    corpus : Corpus
    phones : mapping of str to int, optional
        Words of a dictionary and the number of phones of their shortest pronunciations.
    guessed : mapping of str to int, optional
        The same for words whose pronunciation was guessed; they count as words without one.
    decode : bool
        Whether the audio is decoded; without it, clipped, silent and damaged recordings are not found.
    progress : callable, optional
        Called as progress(done, total) for utterances.
    runner : Runner, optional
        Where the audio is decoded, by default in threads, one per core.  Its workers must have access to the files.

    Returns
    -------
    corpus : Corpus
        The utterances whose audio can be decoded.  Its report lists the others; remarks and marks are added.
    Examination
    """
    levels: dict[str, _Levels] = {}
    report = RunReport(corpus.report.what, 0, list(corpus.report.lost), dict(corpus.report.remarks))
    all_levels = _all_levels(corpus, runner) if decode else _from_headers(corpus)
    for number, (utterance, outcome) in enumerate(zip(corpus.utterances, all_levels, strict=True), 1):
        if isinstance(outcome, Exception):
            report.fail(utterance.name, reason_of(outcome))
        else:
            levels[utterance.name] = outcome
        if progress:
            progress(number, len(corpus.utterances))
    readable = Corpus(tuple(entry for entry in corpus.utterances if entry.name in levels), report, corpus.headers)
    examination = _examination(readable, levels, phones, guessed or {})
    report.num_done = len(readable.utterances)
    report.remarks |= examination.remarks()
    for kind in ("clipped", "silent", "too_short"):
        report.marked += [(name, kind.replace("_", "-"), text) for name, text in getattr(examination, kind).items()]
    irregular: dict[str, str] = {}  # once for each file
    for utterance in readable.utterances:
        for note in levels[utterance.name].notes:
            irregular.setdefault(f"{utterance.audio}: {note}", utterance.name)
    report.marked += [(name, IRREGULAR, text) for text, name in irregular.items()]
    report.marked += [(name, "no-transcript", "audio without a transcript") for name in examination.no_transcript]
    report.marked += [(name, "no-words", "an empty transcript") for name in examination.no_words]
    return readable, examination


class _Levels(NamedTuple):
    """Levels of the samples of an utterance: their number, the number at full scale, and the peak without the mean.

    notes: what is unusual about its file.
    """

    samples: int
    at_full_scale: int
    peak: float
    notes: tuple[str, ...] = ()


def _from_headers(corpus: Corpus) -> Iterator[_Levels]:
    """Yield what is known of each utterance without decoding."""
    for utterance in corpus.utterances:
        yield _Levels(
            1, 0, FULL_SCALE, corpus.headers[utterance.audio].notes if utterance.audio in corpus.headers else ()
        )


def _all_levels(corpus: Corpus, runner: Runner | None) -> Iterator["_Levels | Exception"]:
    """Yield the levels of each utterance, or why it cannot be read, in order."""
    files = [(utterance, corpus.headers[utterance.audio]) for utterance in corpus.utterances]
    with closing(thread_runner()) if runner is None else nullcontext(runner) as open_runner:
        for _, levels in open_runner.each(levels_of, files, seconds=lambda file: corpus.seconds(file[0])):
            yield levels


def levels_of(files: Sequence[tuple[Utterance, AudioHeader]]) -> list["_Levels | ArgonautError"]:
    """Decode the audio of utterances; return their levels, or why they cannot be read.

    A lack of memory, or of what else another worker may have, is raised.
    """
    return [_levels(utterance, header) for utterance, header in files]


def _levels(utterance: Utterance, header: AudioHeader) -> "_Levels | ArgonautError":
    try:
        count = at_full_scale = 0
        notes: list[str] = []
        lowest = np.inf
        highest = -np.inf
        total = 0.0
        for samples in _pieces(utterance, header, notes):
            count += len(samples)
            at_full_scale += int(np.count_nonzero(np.abs(samples) >= FULL_SCALE - 1.5))
            lowest = min(lowest, float(samples.min()))
            highest = max(highest, float(samples.max()))
            total += float(samples.sum(dtype=np.float64))
        mean = total / count
        peak = max(highest - mean, mean - lowest)
        return _Levels(count, at_full_scale, peak, tuple(dict.fromkeys(notes)))
    except OSError as fault:
        if is_shortage(fault):
            raise
        return FormatError(reason_of(fault))
    except ArgonautError as fault:
        return FormatError(reason_of(fault))


def _pieces(utterance: Utterance, header: AudioHeader, notes: list[str]) -> Iterator[npt.NDArray[np.float32]]:
    """Yield the samples of an utterance, of a long one in pieces; the mean of several channels if none is chosen."""
    first, stop = utterance.samples(header)
    channel: Channel = MIX if utterance.channel is None else utterance.channel
    size = PIECE_SECONDS * header.rate
    if stop - first > size and not _is_mp3(utterance.audio):  # MP3 is decoded from the beginning for each piece
        for begin in range(first, stop, size):
            samples, _ = read_audio(utterance.audio, channel, None, begin, min(begin + size, stop) - 1, notes)
            yield samples
            if len(samples) < size:  # the file may end before its header says
                break
    elif first or stop < header.num_samples:
        yield read_audio(utterance.audio, channel, None, first, stop - 1, notes)[0]
    else:
        yield read_audio(utterance.audio, channel, notes=notes)[0]


def _is_mp3(path: Path) -> bool:
    with path.open("rb") as file:
        return audio_format(file.read(HEAD_SIZE)) == MP3


def _examination(
    corpus: Corpus, levels: Mapping[str, _Levels], phones: Mapping[str, int] | None, guessed: Mapping[str, int]
) -> Examination:
    counts: Counter[str] = Counter()
    clipped = {}
    silent = {}
    too_short = {}
    for utterance in corpus.utterances:
        level = levels[utterance.name]
        seconds = corpus.seconds(utterance)
        words = utterance.words or ()
        counts.update(words)
        if level.at_full_scale >= max(CLIPPED_SAMPLES, CLIPPED_SHARE * level.samples):
            clipped[utterance.name] = f"{level.at_full_scale} of {level.samples} samples at full scale"
        if level.peak < SILENT_PEAK:
            silent[utterance.name] = f"no sample above {level.peak:.0f} of {FULL_SCALE:.0f}"
        least = sum(1 if phones is None else phones.get(word) or guessed.get(word, 1) for word in words)
        if seconds < PHONE_SECONDS * least:
            unit = "words" if phones is None else "phones"
            too_short[utterance.name] = (
                f"{seconds:.2f} s for {least} {unit}; expected at least {PHONE_SECONDS * least:.2f} s"
            )
    unknown = None if phones is None else {word: count for word, count in counts.most_common() if word not in phones}
    speakers = {name: _share(corpus, members) for name, members in corpus.speakers.items()}
    headers = [corpus.headers[path] for path in dict.fromkeys(utterance.audio for utterance in corpus.utterances)]
    return Examination(
        total=_share(corpus, corpus.utterances),
        speakers=speakers,
        rates=dict(sorted(Counter(header.rate for header in headers).items())),
        channels=dict(sorted(Counter(header.channels for header in headers).items())),
        no_channel=sum(
            utterance.channel is None and corpus.headers[utterance.audio].channels > 1
            for utterance in corpus.utterances
        ),
        no_transcript=tuple(utterance.name for utterance in corpus.utterances if utterance.words is None),
        no_words=tuple(utterance.name for utterance in corpus.utterances if utterance.words == ()),
        clipped=clipped,
        silent=silent,
        too_short=too_short,
        num_words=len(counts),
        unknown=unknown,
        better_case=_better_case(unknown, phones) if unknown and phones else None,
    )


def _share(corpus: Corpus, members: tuple[Utterance, ...]) -> Share:
    seconds = sum(corpus.seconds(utterance) for utterance in members)
    return Share(len(members), round(seconds, 3), sum(len(utterance.words or ()) for utterance in members))


def _better_case(unknown: Mapping[str, int], phones: Mapping[str, int]) -> str | None:
    """Return the case in which most of the unknown words are in the dictionary."""
    changes: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper}
    known_counts = {case: sum(change(word) in phones for word in unknown) for case, change in changes.items()}
    best = max(known_counts, key=lambda case: known_counts[case])
    return best if known_counts[best] > MOST_KNOWN_BY_CASE * len(unknown) else None


def _duration(seconds: float) -> str:
    """Return a duration for reading, such as `1 h 20 min`, `3.4 min` or `12.5 s`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds / 60:.1f} min"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"
