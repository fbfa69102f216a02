"""Transcripts to align, in the formats of several programs."""

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from readers.common.text import read_lines
from readers.errors import FormatError
from readers.htk.mlf import MLF, Label, read_mlf
from readers.htk.storage.label_fields import HEADER, is_mlf
from readers.results.trn import is_trn, named_entries, trn_entries


def read_transcripts(path: str | Path, entries: Sequence[Any], list_name: str) -> MLF:
    """Read the transcripts of the entries of a list; the content decides the format.

    It is an MLF, NIST's trn (lines `words (utterance)`), Kaldi's text (lines `utterance words`), or plain text with one
    line per entry, in the order of the list.  Raises FormatError for other files.
    """
    if is_mlf(path):
        return read_mlf(path)
    lines = read_lines(path)
    if lines and lines[0].strip() == HEADER:  # compressed
        return read_mlf(path)
    tails = {PurePosixPath(entry.key).name for entry in entries}
    if is_trn(lines, tails):
        named = trn_entries(path)
    elif any(line.split()[0].rsplit("/", 1)[-1] in tails for line in lines if line.strip()):
        named = named_entries(path)
    elif len(lines) == len(entries):
        return _as_mlf(path, ((entry.key, line.split(), i) for i, (entry, line) in enumerate(zip(entries, lines), 1)))
    else:
        raise FormatError(
            f"{path}: {len(lines)} lines of text without names of utterances; expected an MLF, lines `utterance words` "
            f"or `words (utterance)`, or one line for each of the {len(entries)} entries of {list_name}"
        )
    return _as_mlf(path, ((f"*/{name}", words, line) for name, (words, line) in named.items()))


def _as_mlf(path: str | Path, transcripts: Iterable[tuple[str, list[str], int]]) -> MLF:
    """Return the transcripts (name, words, line) of a file."""
    mlf = MLF()
    for name, words, line in transcripts:
        mlf.add(f"{name}.lab", [Label(None, None, word) for word in words], f"{path}", line)
    return mlf
