"""Sentences of a text, a line each, as the words that are said: lower-case letters and apostrophes, all else parts."""

import re
from pathlib import Path

from readers.common.text import read_lines

_WORD = re.compile(r"[a-z][a-z']*")


def read_sentences(path: Path) -> list[list[str]]:
    """The lines that have words."""
    lines = (_WORD.findall(line.lower().replace("’", "'")) for line in read_lines(path))
    return [words for words in lines if words]
