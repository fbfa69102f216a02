"""Lists of audio files as HTK uses them: an SCP, with the words in an MLF.

The MLF may be an alignment of HVite, whose words stand beside the phones or states that they begin with.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from readers.common.report import RunReport
from readers.corpora.corpus import AudioHeaders
from readers.corpora.directory import place_in_file
from readers.corpora.drafts import Draft, audio_path, plain_names, reason
from readers.errors import ArgonautError
from readers.htk.mlf import MLF, Label, read_mlf
from readers.htk.scp import read_scp

# What alignments name silence at the words' level, in upper case.
NO_WORDS = ("<S>", "</S>", "!SIL", "SIL", "SP", "<SIL>", "<EPS>", "!NULL", "!ENTER", "!EXIT", "SENT-START", "SENT-END")


def script_file_drafts(
    source: Path, words: Path | None, report: RunReport, speaker_characters: int = 0
) -> Iterator[Draft]:
    """Yield the utterances of an SCP `PATH`, `NAME=PATH` or `PATH FEATURE-FILE`; parts are in samples.

    words: MLF of the transcripts.  Parts of files that cannot be read are listed in the report.
    Raises FormatError for a malformed list or MLF.
    """
    entries = read_scp(source, expand=False, channels=True)
    paths = [audio_path(_first_file(entry.path), source.parent, entry.where, also_here=True) for entry in entries]
    names, headers = plain_names(paths), AudioHeaders()
    transcripts = MLF() if words is None else read_mlf(words)
    keys = keys_of_names(transcripts)
    for entry, path in zip(entries, paths):
        name = names[path] if entry.logical == entry.path else entry.key.replace("/", "_")
        labels = transcripts[keys[name]] if name in keys else None
        text = None if labels is None else " ".join(spoken_words(labels))
        speaker = path.stem[:speaker_characters] if speaker_characters else path.parent.name or "speaker"
        try:
            start, end, channel = place_in_file(entry._replace(path=os.fspath(path)), headers)
        except (ArgonautError, OSError) as fault:
            report.fail(name, reason(fault))
        else:
            yield Draft(entry.where, name, speaker, text, path, start, end, channel)


def keys_of_names(labels: MLF) -> dict[str, str]:
    """Return the keys of an MLF by the names of their utterances, without directories."""
    return {key.rsplit("/", 1)[-1]: key for key in labels}


def spoken_words(labels: Sequence[Label], silences: Collection[str] = NO_WORDS) -> list[str]:
    """Return the words of an utterance: the last column with names, without silence.

    The labels are words, or `start end phone score word`, or `start end state score phone score word`.
    """
    level = max((len(label.aux) for label in labels), default=0)
    words = [label.name if not level else label.aux[level - 1][0] for label in labels if len(label.aux) >= level]
    return [word for word in words if word.upper() not in silences]


def _first_file(text: str) -> str:
    """Return the audio file of a line, which names a feature file, too, in lists of HCopy."""
    fields = text.split()
    return fields[0] if len(fields) == 2 and not os.path.exists(text) else text  # noqa: PTH110
