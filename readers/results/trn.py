"""Transcripts with one utterance per line: `word word ... (utterance-id)` (NIST trn, Sphinx), and Kaldi's `text` files.

Kaldi's lines are `utterance-id word word ...`.
Source: NIST sclite documentation; the AN4 corpus; Kaldi's data directories (`text`).
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from readers.common.report import Figures
from readers.common.text import read_lines
from readers.errors import FormatError

ALTERNATIVES = {"{", "/", "}"}  # tokens of sclite's `{ a / b / @ }`
_LINE = re.compile(r"(.*?)\(([^()\s]+)\)")


def read_trn(path: str | Path, marks: Sequence[str] = ("<s>", "</s>")) -> dict[str, list[str]]:
    """Read transcripts in trn format.

    Parameters
    ----------
    path : path
        Lines `word word ... (utterance-id)`.
    marks : sequence of str
        Words to leave out.

    Returns
    -------
    dict of str to list of str
        Utterance id -> words, in file order.

    Raises
    ------
    FormatError
        With file and line, for a line without an id, a repeated id, and alternatives.

    References
    ----------
    NIST sclite documentation.
    """
    return {name: words for name, (words, _) in trn_entries(path, marks).items()}


def trn_entries(path: str | Path, marks: Sequence[str] = ("<s>", "</s>")) -> dict[str, tuple[list[str], int]]:
    """Return utterance id -> (words, line number), as read_trn."""
    transcripts: dict[str, tuple[list[str], int]] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if not match:
            raise FormatError(
                f"{path}:{number}: {line.strip()[:60]!r}; expected words and the utterance in parentheses"
            )
        words, name = match.groups()
        if name in transcripts:
            raise FormatError(
                f"{path}:{number}: utterance {name!r} is already at line {transcripts[name][1]}; expected each once"
            )
        if ALTERNATIVES & set(words.split()):
            raise FormatError(
                f"{path}:{number}: alternatives ({{ a / b }}), which are not supported; expected a single word"
            )
        transcripts[name] = [word for word in words.split() if word not in marks], number
    if not transcripts:
        raise FormatError(f"{path}: no transcripts; expected lines `word word ... (utterance)`")
    return transcripts


def is_trn(lines: Iterable[str], known: Collection[str] = ()) -> bool:
    """Whether most of the lines that are not blank end with an id in parentheses, or one of them with a known id.

    `read_trn` then names a malformed line, if there is one.
    """
    lines = [line.strip() for line in lines if line.strip()]
    ids = [match[2] for line in lines if (match := _LINE.fullmatch(line))]
    return 2 * len(ids) > len(lines) or any(name in known for name in ids)


def read_named_lines(path: str | Path) -> dict[str, list[str]]:
    """Return utterance id -> words of lines `utterance-id word word ...`, in file order.

    Raises FormatError, with file and line, for a repeated id and a file without lines.
    """
    return {name: words for name, (words, _) in named_entries(path).items()}


def named_entries(path: str | Path) -> dict[str, tuple[list[str], int]]:
    """Return utterance id -> (words, line number), as read_named_lines."""
    transcripts: dict[str, tuple[list[str], int]] = {}
    for number, line in enumerate(read_lines(path), 1):
        name, *words = line.split() or [""]
        if name in transcripts:
            raise FormatError(f"{path}:{number}: utterance {name!r} is repeated; expected each once")
        if name:
            transcripts[name] = words, number
    if not transcripts:
        raise FormatError(f"{path}: no transcripts; expected lines `utterance word word ...`")
    return transcripts


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    transcripts = read_trn(path)
    words = Counter(word for entry in transcripts.values() for word in entry)
    return [("utterances", len(transcripts)), ("words", f"{sum(words.values())}, {len(words)} different")]
