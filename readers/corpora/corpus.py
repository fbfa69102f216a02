"""A corpus: utterances, which are audio files or parts of them, with their speakers and words."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from readers.audio.header import AudioHeader, read_audio_header
from readers.common.report import RunReport
from readers.common.text import canonical
from readers.errors import FormatError

LONGEST_NAME = 200  # bytes; names become names of files
_UNUSABLE = re.compile(r"""[\s.="'*?/\\\x00-\x1f\x7f-\x9f]""")  # a dot would begin an extension


@dataclass(frozen=True)
class Utterance:
    """One utterance of a corpus.

    Parameters
    ----------
    name : str
        Name, without blanks, dots, slashes, quotes and equals signs.
    speaker : str
        Name of the speaker.
    words : tuple of str, or None
        The transcript; None without one.
    audio : Path
        The audio file.
    start : float
        Where the utterance begins in the file, in seconds; a whole number of samples.
    end : float or None
        Where it ends, in seconds; None for the end of the file.
    channel : int or None
        Channel of the file, counted from 0; None for a file with one channel, and where none was chosen.
    recording : str
        What the source calls the audio file; "" if it has no name but that of the file.
    """

    name: str
    speaker: str
    words: tuple[str, ...] | None
    audio: Path
    start: float = 0.0
    end: float | None = None
    channel: int | None = None
    recording: str = ""

    def samples(self, header: AudioHeader) -> tuple[int, int]:
        """The utterance's first sample in a file with this header, and the one after its last."""
        stop = header.num_samples if self.end is None else round(self.end * header.rate)
        return round(self.start * header.rate), stop


class AudioHeaders(dict[Path, AudioHeader]):
    """Headers of audio files by path; each file is opened when it is first asked for.

    A file that cannot be read raises FormatError or OSError each time.
    """

    def __init__(self) -> None:
        super().__init__()
        self._faults: dict[Path, Exception] = {}

    def __missing__(self, path: Path) -> AudioHeader:
        if path in self._faults:
            raise self._faults[path]
        try:
            self[path] = read_audio_header(path)
        except (FormatError, OSError) as fault:
            self._faults[path] = fault
            raise
        return self[path]


@dataclass(frozen=True)
class Corpus:
    """Utterances with speakers and words.

    Parameters
    ----------
    utterances : tuple of Utterance
        In the order of their names; each name occurs once.
    report : RunReport
        Utterances and files that an import has left out, with reasons; empty for a corpus that was read back.
    headers : AudioHeaders
        Headers of the audio files.
    """

    utterances: tuple[Utterance, ...]
    report: RunReport = field(default_factory=lambda: RunReport("utterances"), compare=False, repr=False)
    headers: AudioHeaders = field(default_factory=AudioHeaders, compare=False, repr=False)

    @property
    def speakers(self) -> dict[str, tuple[Utterance, ...]]:
        """The utterances of each speaker, in the order of the speakers' names."""
        members: dict[str, list[Utterance]] = {}
        for utterance in self.utterances:
            members.setdefault(utterance.speaker, []).append(utterance)
        return {speaker: tuple(members[speaker]) for speaker in sorted(members)}

    def seconds(self, utterance: Utterance) -> float:
        """Return the duration of an utterance in seconds.

        Parameters
        ----------
        utterance : Utterance

        Returns
        -------
        float

        Raises
        ------
        FormatError, OSError
            If the length of the file is needed and its header cannot be read.
        """
        end = self.headers[utterance.audio].seconds if utterance.end is None else utterance.end
        return end - utterance.start


def usable_name(name: str, where: str) -> str:
    """Return a name in which characters that lists and file names cannot hold are replaced by _.

    Raises FormatError, beginning with `where`, for a name that is empty or too long.
    """
    name = _UNUSABLE.sub("_", canonical(name).strip())
    if not name or len(os.fsencode(name)) > LONGEST_NAME:
        problem = f"a name of {len(os.fsencode(name))} bytes" if name else "an empty name"
        raise FormatError(f"{where}: {problem}; expected a name of 1 to {LONGEST_NAME} bytes")
    return name


def by_name(utterances: Iterable[Utterance]) -> tuple[Utterance, ...]:
    """Return utterances in the order of their names."""
    return tuple(sorted(utterances, key=lambda utterance: utterance.name))
