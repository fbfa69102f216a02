"""The directory of a corpus that `argonaut import` writes, from lists in HTK's formats.

audio.scp   `NAME=PATH`, or `NAME=PATH[first,last]` for a part of a file, in samples counted from 0, both inclusive;
            `NAME=PATH[first,last,channel]` for one channel of several, counted from 0
words.mlf   the words of the utterances with a transcript
speakers    `NAME SPEAKER`
recordings  `NAME RECORDING`, of utterances whose audio files the source has given names
"""

import os
from collections import Counter
from pathlib import Path

from readers.common.files import write_lines
from readers.common.report import Figures, extent, rows_of
from readers.common.text import read_lines
from readers.corpora.corpus import AudioHeaders, Corpus, Utterance, by_name
from readers.errors import FormatError
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.htk.scp import ScpEntry, read_scp, write_scp

AUDIO, WORDS, SPEAKERS, RECORDINGS = "audio.scp", "words.mlf", "speakers", "recordings"


def write_corpus(corpus: Corpus, directory: str | Path) -> None:
    """Write the lists of a corpus; `read_corpus` returns an equal corpus.

    audio.scp is removed first and written last, so that an interrupted call leaves no mixture of two corpora.

    Parameters
    ----------
    corpus : Corpus
    directory : path
        Is created if necessary.

    Raises
    ------
    FormatError
        If the header of an audio file of which a part is used cannot be read.
    OSError
    """
    directory = Path(directory)
    entries = [_entry(utterance, corpus.headers) for utterance in corpus.utterances]
    (directory / AUDIO).unlink(missing_ok=True)
    write_mlf(
        directory / WORDS,
        (
            (f"*/{utterance.name}.lab", [Label(None, None, word) for word in utterance.words])
            for utterance in corpus.utterances
            if utterance.words is not None
        ),
    )
    write_lines(directory / SPEAKERS, (f"{utterance.name} {utterance.speaker}" for utterance in corpus.utterances))
    if named := [f"{utterance.name} {utterance.recording}" for utterance in corpus.utterances if utterance.recording]:
        write_lines(directory / RECORDINGS, named)
    else:
        (directory / RECORDINGS).unlink(missing_ok=True)
    write_scp(directory / AUDIO, entries)


def read_corpus(directory: str | Path) -> Corpus:
    """Read a corpus that `argonaut import` or `write_corpus` has written.

    Parameters
    ----------
    directory : path
        The directory with audio.scp, words.mlf and speakers.

    Returns
    -------
    Corpus
        The headers of audio files of which only a part is used have been read.

    Raises
    ------
    FormatError
        For lists that contradict each other, and a part outside of its audio file.
    OSError
        For a missing list, and a missing audio file of which only a part is used.
    """
    directory = Path(directory)
    headers = AudioHeaders()
    speakers = read_speakers(directory / SPEAKERS)
    named = (directory / RECORDINGS).exists()
    recordings = _read_names(directory / RECORDINGS, "recording") if named else {}
    words = read_mlf(directory / WORDS)
    utterances: dict[str, Utterance] = {}
    for entry in read_scp(directory / AUDIO, expand=False, channels=True):
        name = entry.key
        if name in utterances:
            raise FormatError(f"{entry.where}: utterance {name!r} is repeated; expected each once")
        if name not in speakers:
            raise FormatError(f"{entry.where}: no speaker of {name!r} in {directory / SPEAKERS}; expected one")
        labels = words.get(name)
        transcript = None if labels is None else tuple(label.name for label in labels)
        start, end, channel = place_in_file(entry, headers)
        recording = recordings.get(name, "")
        utterances[name] = Utterance(name, speakers[name], transcript, Path(entry.path), start, end, channel, recording)
    if not utterances:
        raise FormatError(f"{directory / AUDIO}: no entries; expected at least one utterance")
    return Corpus(by_name(utterances.values()), headers=headers)


def feature_pairs(directory: str | Path, target: str | Path, extension: str = "htk") -> list[tuple[str, str]]:
    """Return the list for `argonaut hcopy` that extracts the features of a corpus.

    Parameters
    ----------
    directory : path
        A corpus that `argonaut import` has written.
    target : path
        Directory of the feature files.
    extension : str
        Their extension.

    Returns
    -------
    list of (str, str)
        Source, with the part of the file if necessary, and feature file `target/NAME.extension`.

    Raises
    ------
    FormatError, OSError
        If audio.scp cannot be read.
    """
    entries = read_scp(Path(directory) / AUDIO, expand=False, channels=True)
    return [(entry.source, os.fspath(Path(target) / f"{entry.key}.{extension}")) for entry in entries]


def _entry(utterance: Utterance, headers: AudioHeaders) -> ScpEntry:
    first = last = None
    if utterance.start or utterance.end is not None or utterance.channel is not None:
        first, stop = utterance.samples(headers[utterance.audio])
        last = stop - 1
    return ScpEntry(utterance.name, os.fspath(utterance.audio), first, last, channel=utterance.channel)


def place_in_file(entry: ScpEntry, headers: AudioHeaders) -> tuple[float, float | None, int | None]:
    """Return start and end in seconds, and the channel, of an entry."""
    if entry.start is None or entry.end is None:
        return 0.0, None, None
    header = headers[Path(entry.path)]
    if entry.end >= header.num_samples or (entry.channel or 0) >= header.channels:
        raise FormatError(
            f"{entry.where}: {entry.source}; expected a part of the {header.num_samples} samples and "
            f"{header.channels} channels of the file"
        )
    end = None if entry.end == header.num_samples - 1 else (entry.end + 1) / header.rate
    return entry.start / header.rate, end, entry.channel


def read_speakers(path: Path) -> dict[str, str]:
    """Return the speaker of each utterance.  Raises FormatError unless the lines are `name speaker`, each name once."""
    return _read_names(path, "speaker")


def _read_names(path: Path, what: str) -> dict[str, str]:
    names: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split()
        if len(fields) != 2 or fields[0] in names:
            raise FormatError(f"{path}:{number}: {line[:60]!r}; expected `name {what}`, each name once")
        names[fields[0]] = fields[1]
    return names


def speakers_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    counts = Counter(row[1] for row in rows_of(path))
    return [
        ("utterances", sum(counts.values())),
        ("speakers", len(counts)),
        ("utterances of each", extent(counts.values())),
    ]
