"""The words of each utterance in a file of transcripts: an MLF, NIST's trn or CTM, or Kaldi's text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from decoder.scoring.error_counts import match_names
from readers.common.text import read_lines
from readers.errors import ConfigError, FormatError
from readers.htk.mlf import MLF, Label, read_mlf
from readers.htk.storage.label_fields import HEADER, is_mlf
from readers.results.timed_words import is_ctm, read_ctm
from readers.results.trn import is_trn, read_named_lines, read_trn


def expanded(labels: Mapping[str, list[Label]], others: Mapping[str, Any]) -> Mapping[str, list[Label]]:
    """Return the labels of an MLF, those of entries with wildcards, `*/one.*.lab`, under the names that they match."""
    if not isinstance(labels, MLF) or not labels.patterns:
        return labels
    unmatched = others.keys() - set(match_names(labels, others).values())
    entries = {name: labels.lookup(f"/{name}.lab") for name in others if name in unmatched}
    return {**labels, **{name: entry for name, entry in entries.items() if entry is not None}}


class MLFWords(Mapping[str, list[str]]):
    """The words of each utterance of an MLF, at one level of its labels."""

    def __init__(self, labels: Mapping[str, list[Label]], level: int):
        self._labels = labels
        self._level = level

    def __getitem__(self, name: str) -> list[str]:
        labels = self._labels[name]
        if not self._level:
            return [label.name for label in labels]
        return [label.aux[self._level - 1][0] for label in labels if len(label.aux) >= self._level]

    def applied_to(self, others: Mapping[str, list[str]]) -> "MLFWords":
        """Return these words, those of entries with wildcards under the names that they match."""
        return MLFWords(expanded(self._labels, others), self._level)

    def __contains__(self, name: object) -> bool:
        return name in self._labels

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)


def read_words(
    path: str | Path, level: int = 0, named_lines: bool = False, beside: Iterable[str | Path] = ()
) -> Mapping[str, list[str]]:
    """Read the words of each utterance from an MLF, trn or CTM file; the content decides which.

    Parameters
    ----------
    path : path
        MLF, trn or CTM file.
    level : int
        Level of an MLF: 0 is the label itself, 1 and above the columns after it.
    named_lines : bool
        Whether to read any other file as lines `utterance words`.
    beside : iterable of path
        Files with which it is compared; the channels of CTM files are those that any of them has.

    Returns
    -------
    mapping of str to list of str
        Words of each utterance; those of an MLF are taken from its labels when they are asked for.

    Raises
    ------
    ConfigError
        If level is negative.
    FormatError
        If no label has this level, or the file is in none of the formats.
    """
    if level < 0:
        raise ConfigError(f"level {level} of an MLF; expected at least 0")
    if level == 0 and not is_mlf(path) and (lines := read_lines(path))[:1] != [HEADER]:
        if is_trn(lines):
            return read_trn(path)
        if is_ctm(lines) and not (named_lines and _may_be_words(lines)):
            ctm_files = [file for file in beside if not is_mlf(file) and is_ctm(read_lines(file))]
            return {name: [word.text for word in words] for name, words in read_ctm(path, ctm_files).items()}
        if named_lines:
            return read_named_lines(path)
        first = lines[0].strip() if lines else ""
        if first != HEADER:
            raise FormatError(
                f"{path}:1: first line {first[:40]!r}; expected {HEADER}, or all lines as in trn or CTM; "
                "for lines `utterance words` use the option text"
            )
    labels = read_mlf(path)
    words = MLFWords(labels, level) if labels.is_large or labels.patterns else dict(MLFWords(labels, level))
    if level and words and not any(words.values()):
        raise FormatError(f"{path}: no label has a level {level}; expected the option level with words, such as 0")
    return words


def _may_be_words(lines: Sequence[str]) -> bool:
    """Whether lines that look like CTM may be utterances with digits: no time has a point, no name occurs twice."""
    rows = [line.split(";;")[0].split() for line in lines]
    rows = [row for row in rows if row]
    has_points = any("." in time for row in rows for time in row[2:4])
    return not has_points and len({row[0] for row in rows}) == len(rows)
