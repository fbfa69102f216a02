"""Sentences whose every word has a label, as text in the forms in which they are passed on.

columns          a word a line, the label in the last column; a sentence ends at a blank line, or behind an end mark
sentence a line  `word word<TAB>label label`
parallel files   `word word` a line in one, `label label` a line in the other
Source: CNTK book 3.4.4 for the columns; the other two are those of published copies of ATIS.
"""

import os
from pathlib import Path

from readers.common.text import read_lines
from readers.errors import FormatError

Token = tuple[int, str, str]  # line, word, label


def read_columns(
    path: str | os.PathLike, end_word: str = "", end_label: str = ""
) -> tuple[list[list[Token]], list[tuple[int, str]]]:
    """(sentences, line and text of those lines that have one column alone and are left out).

    The first column is the word.  A sentence also ends behind the word end_word or, where that is "", behind the label
    end_label.  Raises FormatError for what is no text.
    """
    sentences: list[list[Token]] = []
    left_out: list[tuple[int, str]] = []
    sentence: list[Token] = []
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split()
        if len(fields) == 1:
            left_out.append((number, fields[0]))
            continue
        if fields:
            sentence.append((number, fields[0], fields[-1]))
        # A label that ends sentences, such as O, may be that of any word: only where no word says it.
        ended = not fields or (fields[0] == end_word if end_word else fields[-1] == end_label)
        if ended and sentence:
            sentences.append(sentence)
            sentence = []
    if sentence:
        sentences.append(sentence)
    return sentences, left_out


def read_tab_lines(path: str | os.PathLike) -> list[list[Token]]:
    """Sentences of `words<TAB>labels`.  Raises FormatError."""
    sentences: list[list[Token]] = []
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        words, tab, labels = line.partition("\t")
        if not tab:
            raise FormatError(f"{path}:{number}: {line.strip()[:60]!r}; expected words, a tab and their labels")
        sentences.append(_together(f"{path}:{number}", number, words.split(), labels.split()))
    return sentences


def read_parallel(words: str | os.PathLike, labels: str | os.PathLike) -> list[list[Token]]:
    """Sentences of two files, line by line.  Raises FormatError."""
    word_lines, label_lines = list(read_lines(words)), list(read_lines(labels))
    if len(word_lines) != len(label_lines):
        raise FormatError(f"{labels}: {len(label_lines)} lines; expected {len(word_lines)}, as {Path(words).name} has")
    sentences: list[list[Token]] = []
    for number, (left, right) in enumerate(zip(word_lines, label_lines), 1):
        if left.strip() or right.strip():
            sentences.append(_together(f"{labels}:{number}", number, left.split(), right.split()))
    return sentences


def _together(where: str, number: int, words: list[str], labels: list[str]) -> list[Token]:
    if len(words) != len(labels) or not words:
        raise FormatError(f"{where}: {len(labels)} labels; expected {len(words)}, one for each word")
    return [(number, word, label) for word, label in zip(words, labels)]
