"""Sentences with a label for each word, in four text formats.

columns: one word per line, the label in the last column; a blank line or an end mark ends a sentence
tab lines: one sentence per line, `word word<TAB>label label`
parallel files: one sentence per line, `word word` in one file, `label label` in the other
CTF: CNTK's text format, one word per line, with the word and the label as comments
Source: CNTK book 3.4.4 for the columns; the others are those of published copies of ATIS.
"""

import re
from pathlib import Path

from readers.common.text import read_lines
from readers.errors import FormatError

Token = tuple[int, str, str]  # line, word, label


def read_columns(
    path: str | Path, end_word: str = "", end_label: str = ""
) -> tuple[list[list[Token]], list[tuple[int, str]]]:
    """Read sentences in column format; the first column is the word, the last the label.

    Parameters
    ----------
    path : path
        Text file; a blank line ends a sentence.
    end_word : str
        Word that also ends a sentence.
    end_label : str
        Label that also ends a sentence, after any word.

    Returns
    -------
    sentences : list of list of (int, str, str)
        Line number, word and label of each word.
    skipped : list of (int, str)
        Number and text of the lines with only one column.

    Raises
    ------
    FormatError
        If the file is not text.

    References
    ----------
    CNTK book 3.4.4.
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
        # CNTK ends a sentence after every word with the end label, also if there is an end word: with the label O of
        # the book's example, in the middle of sentences.
        ended = not fields or fields[0] == end_word or fields[-1] == end_label
        if ended and sentence:
            sentences.append(sentence)
            sentence = []
    if sentence:
        sentences.append(sentence)
    return sentences, left_out


def read_tab_lines(path: str | Path) -> list[list[Token]]:
    """Read sentences of the form `words<TAB>labels`.  Raises FormatError."""
    sentences: list[list[Token]] = []
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        words, tab, labels = line.partition("\t")
        if not tab:
            raise FormatError(f"{path}:{number}: {line.strip()[:60]!r}; expected words, a tab and their labels")
        sentences.append(_together(f"{path}:{number}", number, words.split(), labels.split()))
    return sentences


def read_parallel(words: str | Path, labels: str | Path) -> list[list[Token]]:
    """Read the sentences of two parallel files.

    Parameters
    ----------
    words, labels : path
        Files with one sentence per line.

    Returns
    -------
    list of list of (int, str, str)
        Line number, word and label of each word.

    Raises
    ------
    FormatError
        If the numbers of lines, or of words and labels of a line, differ.
    """
    word_lines = list(read_lines(words))
    label_lines = list(read_lines(labels))
    if len(word_lines) != len(label_lines):
        raise FormatError(f"{labels}: {len(label_lines)} lines; expected {len(word_lines)}, as in {Path(words).name}")
    sentences: list[list[Token]] = []
    for number, (word_line, label_line) in enumerate(zip(word_lines, label_lines), 1):
        if word_line.strip() or label_line.strip():
            sentences.append(_together(f"{labels}:{number}", number, word_line.split(), label_line.split()))
    return sentences


def read_ctf(path: str | Path) -> list[list[Token]]:
    """Read sentences in CNTK's text format, lines `sentence |stream index:1 |# word |stream index:1 |# label`.

    The word is the first comment of a line, the label the last.  Consecutive lines with the same sentence number, or
    without one, form a sentence.  Raises FormatError for a line without comments.
    """
    sentences: list[list[Token]] = []
    current = ""
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        sentence, *fields = (field.strip() for field in line.split("|"))
        comments = [field[1:].split() for field in fields if field.startswith("#")]
        if len(comments) < 2 or len(comments[0]) != 1 or len(comments[-1]) != 1:
            raise FormatError(
                f"{path}:{number}: {line.strip()[:60]!r}; expected comments with word and label, |# word and |# label"
            )
        if not sentences or (sentence and sentence != current):
            sentences.append([])
            current = sentence
        sentences[-1].append((number, comments[0][0], comments[-1][0]))
    return sentences


def is_ctf(path: str | Path) -> bool:
    """Whether the first line that is not blank is in CNTK's text format."""
    line = next((line for line in read_lines(path) if line.strip()), "")
    return re.match(r"\s*[0-9]*\s*\|\w+\s", line) is not None


def _together(where: str, number: int, words: list[str], labels: list[str]) -> list[Token]:
    if len(words) != len(labels) or not words:
        raise FormatError(f"{where}: {len(labels)} labels; expected {len(words)}, one for each word")
    return [(number, word, label) for word, label in zip(words, labels)]
