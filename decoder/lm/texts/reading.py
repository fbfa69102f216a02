"""Reads the sentences of texts, and checks whether a file is a plain text."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from decoder.lm.options import TextFiles, VocabularyDictionary
from readers.common.report import Log
from readers.errors import FormatError
from readers.htk.mlf import read_mlf
from readers.htk.storage.label_fields import HEADER
from readers.language.sentences import TextPart, read_part, read_word_list
from readers.results.trn import read_trn

MARKS = ("<s>", "</s>")
FEWEST_NAMED = 10  # lines needed to decide whether their first words are utterance names


def read_sentences(options: TextFiles, note: Log) -> list[list[str]]:
    """Return the sentences of all files, without <s> and </s>.  Raises FormatError for an empty file.

    note: receives a line about a text whose lines seem to begin with names.
    """
    sentences: list[list[str]] = []
    for path in options.text:
        lines = read_part(TextPart(path))
        check = TextCheck(path)
        check.add(LineFacts.of(lines))
        check.close(note)
        sentences += without_marks(lines)
    return sentences + read_transcripts(options)


def read_transcripts(options: TextFiles) -> list[list[str]]:
    """Return the sentences of the files that are not plain texts."""
    sentences: list[list[str]] = []
    for path in options.transcription:
        sentences += read_trn(path, MARKS).values()
    for path in options.mlf:
        sentences += [[label.name for label in labels if label.name not in MARKS] for labels in read_mlf(path).values()]
    return sentences


def read_vocabulary_words(vocabulary: Path | None, dictionary: VocabularyDictionary, note: Log) -> list[str] | None:
    """Return the words of a vocabulary and of a dictionary, without <s> and </s>; None if there are neither."""
    if not dictionary.dict and not vocabulary:
        return None
    words = read_word_list(vocabulary) if vocabulary else []
    words += [entry.word for entry in dictionary.read(note)]
    return [word for word in dict.fromkeys(words) if word not in MARKS]


def without_marks(lines: list[list[str]]) -> Iterator[list[str]]:
    """Yield the words of lines that are not <s> or </s>."""
    for line in lines:
        yield [word for word in line if word not in MARKS] if "<s>" in line or "</s>" in line else line


class LineFacts(NamedTuple):
    """Facts about the lines of a text, which show whether it is one.

    first: the first line.  longer: number of lines of several words.  closed: of lines whose last word is in
    parentheses, as the utterance is in trn files.  names: the first words of the lines, if they are
    all different, else None; others: the other words, unless names is None.
    """

    lines: int
    first: list[str]
    longer: int
    closed: int
    names: set[str] | None
    others: set[str]

    @classmethod
    def of(cls, lines: list[list[str]]) -> "LineFacts":
        names = {line[0] for line in lines}
        are_names = len(names) == len(lines)
        return cls(
            len(lines),
            lines[0] if lines else [],
            sum(len(line) > 1 for line in lines),
            sum(line[-1][0] + line[-1][-1] == "()" for line in lines),
            names if are_names else None,
            {word for line in lines for word in line[1:]} if are_names else set(),
        )


class TextCheck:
    """Checks whether a file is a plain text, given the facts about its parts in their order."""

    def __init__(self, path: Path):
        self.path = path
        self.first = self.last = ""
        self.lines = self.longer = self.closed = 0
        self.names: set[str] | None = set()
        self.others: set[str] = set()

    def add(self, facts: LineFacts) -> None:
        """Raises FormatError if the first line is that of another kind of file."""
        if not self.lines and facts.first == [HEADER]:
            raise FormatError(
                f"{self.path}:1: a master label file; expected sentences, one per line, or the option mlf"
            )
        if not self.lines and facts.first == ["\\data\\"]:
            raise FormatError(f"{self.path}: an ARPA language model; expected sentences, one per line")
        self.first = self.first or "".join(facts.first[:1])
        self.last = self.last or "".join(facts.first[-1:])
        self.lines += facts.lines
        self.longer += facts.longer
        self.closed += facts.closed
        if self.names is None or facts.names is None or not self.names.isdisjoint(facts.names):
            self.names = None
            self.others = set()
        else:
            self.names |= facts.names
            self.others |= facts.others

    def close(self, note: Log) -> None:
        """Tell if each line seems to begin or end with an utterance name, as in text files of Kaldi or in trn files.

        Raises FormatError if there are no lines.
        """
        if not self.lines:
            raise FormatError(f"{self.path}: no sentences; expected one per line")
        named = self.lines >= FEWEST_NAMED and 2 * self.longer > self.lines  # not a list of words
        if named and self.closed == self.lines:
            note(f"{self.path}: lines end with utterances, as in {self.last}; expected the option transcription")
        if self.names is not None and named and self.names.isdisjoint(self.others):
            note(
                f"{self.path}: every line begins with a word that occurs only once, such as {self.first}; if these are "
                "utterance names, remove them"
            )
