"""Transcripts with one utterance per line: `word word ... (utterance-id)` (NIST trn, Sphinx), and Kaldi's `text` files.

Kaldi's lines are `utterance-id word word ...`.
Source: NIST sclite documentation; the AN4 corpus; Kaldi's data directories (`text`).
"""

import os
import re
from collections.abc import Iterable, Sequence

from readers.common.files import atomic_write
from readers.common.text import read_lines
from readers.errors import FormatError

ALTERNATIVES = {"{", "/", "}"}  # tokens of sclite's `{ a / b / @ }`
_LINE = re.compile(r"(.*?)\(([^()\s]+)\)")


def read_trn(path: str | os.PathLike, marks: Sequence[str] = ("<s>", "</s>")) -> dict[str, list[str]]:
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
    transcripts: dict[str, list[str]] = {}
    lines_of: dict[str, int] = {}
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
                f"{path}:{number}: utterance {name!r} is already at line {lines_of[name]}; expected each once"
            )
        if ALTERNATIVES & set(words.split()):
            raise FormatError(
                f"{path}:{number}: alternatives ({{ a / b }}), which are not supported; expected a single word"
            )
        transcripts[name] = [word for word in words.split() if word not in marks]
        lines_of[name] = number
    if not transcripts:
        raise FormatError(f"{path}: no transcripts; expected lines `word word ... (utterance)`")
    return transcripts


def is_trn(lines: Iterable[str]) -> bool:
    """Whether there are lines that are not blank, and all of them end with an id in parentheses."""
    lines = [line.strip() for line in lines if line.strip()]
    return bool(lines) and all(_LINE.fullmatch(line) for line in lines)


def read_named_lines(path: str | os.PathLike) -> dict[str, list[str]]:
    """Return utterance id -> words of lines `utterance-id word word ...`, in file order.

    Raises FormatError, with file and line, for a repeated id and a file without lines.
    """
    transcripts: dict[str, list[str]] = {}
    for number, line in enumerate(read_lines(path), 1):
        name, *words = line.split() or [""]
        if name in transcripts:
            raise FormatError(f"{path}:{number}: utterance {name!r} is repeated; expected each once")
        if name:
            transcripts[name] = words
    if not transcripts:
        raise FormatError(f"{path}: no transcripts; expected lines `utterance word word ...`")
    return transcripts


def write_trn(path: str | os.PathLike, transcripts: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Write (utterance id, words) pairs."""
    with atomic_write(path, "w") as file:
        for name, words in transcripts:
            file.write(" ".join([*words, f"({name})"]) + "\n")
