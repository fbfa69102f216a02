"""Sentences of a text, one per line, as spoken words: lower-case letters and apostrophes; the rest separates words."""

import re
from pathlib import Path

from readers.common.text import read_lines

_WORD = re.compile(r"[a-z][a-z']*")


def read_sentences(path: Path) -> list[list[str]]:
    """Return the lines that contain words."""
    lines = (_WORD.findall(line.lower().replace("’", "'")) for line in read_lines(path))
    return [words for words in lines if words]
