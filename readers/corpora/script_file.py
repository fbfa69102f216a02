"""Lists of audio files as HTK uses them: an SCP, with the words in an MLF.

The MLF may be an alignment of HVite, whose words stand beside the phones or states that they begin with.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from readers.common.names import by_unique_ends
from readers.common.report import RunReport
from readers.corpora.corpus import AudioHeaders
from readers.corpora.corpus_builder import Draft, audio_path, plain_names, reason
from readers.corpora.directory import place_in_file
from readers.errors import ArgonautError, FormatError
from readers.htk.mlf import MLF, Label, read_mlf
from readers.htk.scp import read_scp

# What alignments name silence at the words' level, in upper case.
NO_WORDS = ("<S>", "</S>", "!SIL", "SIL", "SP", "<SIL>", "<EPS>", "!NULL", "!ENTER", "!EXIT", "SENT-START", "SENT-END")
# A state such as s2, aa_s2, ax_s3_17 or l-aa+r[2]; the group is its model.
_STATE = re.compile(r"s\d+|(.+?)(?:_s\d+(?:_\d+)?|\[\d+\])")


def script_file_drafts(
    source: Path, words: Path | None, report: RunReport, speaker_characters: int = 0
) -> Iterator[Draft]:
    """Yield the utterances of an SCP `PATH`, `NAME=PATH` or `PATH FEATURE-FILE`; parts are in samples.

    words: MLF of the transcripts.  Parts of files that cannot be read are listed in the report.
    Raises FormatError for a malformed list or MLF, and an MLF without words.
    """
    entries = read_scp(source, expand=False, channels=True)
    paths = [audio_path(_first_file(entry.path), source.parent, entry.where, also_here=True) for entry in entries]
    names = plain_names(paths)
    headers = AudioHeaders()
    transcripts = MLF() if words is None else read_mlf(words)
    keys = keys_of_names(transcripts)
    level = level_of_words(transcripts, words)
    for entry, path in zip(entries, paths):
        name = names[path] if entry.logical == entry.path else entry.key.replace("/", "_")
        found = (transcripts.lookup(each) for each in (f"{entry.key}.lab", os.fspath(path)))
        labels = next((each for each in found if each is not None), None)
        if labels is None and name in keys:
            labels = transcripts[keys[name]]
        text = None if labels is None else " ".join(spoken_words(labels, level))
        speaker = path.stem[:speaker_characters] if speaker_characters else path.parent.name or "speaker"
        try:
            start, end, channel = place_in_file(entry._replace(path=os.fspath(path)), headers)
        except (ArgonautError, OSError) as fault:
            report.fail(name, reason(fault))
        else:
            yield Draft(entry.where, name, speaker, text, path, start, end, channel)


def keys_of_names(labels: MLF) -> dict[str, str]:
    """Return the keys of an MLF by names of utterances: the last part, if no other ends so, or all, joined by `_`."""
    return by_unique_ends(list(labels)) | {key.replace("/", "_"): key for key in labels}


def spoken_words(labels: Sequence[Label], level: int) -> list[str]:
    """Return the names of an utterance at a level, without silence."""
    words = [label.name if not level else label.aux[level - 1][0] for label in labels if len(label.aux) >= level]
    return [word for word in words if word.upper() not in NO_WORDS]


def level_of_words(labels: MLF, path: Path | None) -> int:
    """Return the last level of the labels, which has the words.

    The labels are words, or `start end phone score word`, or `start end state score phone score word`.
    Raises FormatError for a state alignment without words.
    """
    level = 0
    state = ""
    has_words = False
    for _, entry in labels.items():
        level = max([level, *(len(label.aux) for label in entry)])
        state = state or (entry[0].name if entry else "")
        has_words = has_words or any(map(_has_word, entry))
    if state and not has_words:
        raise FormatError(
            f"{path}: an alignment of states, such as {state!r}, without words; expected words, or an alignment that "
            "has them beside the states"
        )
    return level


def _has_word(label: Label) -> bool:
    """Whether a label is not only a state, with or without its model."""
    state = _STATE.fullmatch(label.name)
    if state is None or len(label.aux) > 1:
        return True
    return bool(label.aux) and state[1] not in (None, label.aux[0][0])


def _first_file(text: str) -> str:
    """Return the audio file of a line, which names a feature file, too, in lists of HCopy."""
    fields = text.split()
    return fields[0] if len(fields) == 2 and not os.path.exists(text) else text  # noqa: PTH110
