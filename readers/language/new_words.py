"""Lists of words to add to a recogniser, one per line, with their pronunciations or without.

    TALLINN T AA L IH N
    ROSENCRANTZ
    [JOHN]
    KAURISMAKI 3 K AW R IH S M AE K IY
    ANNIKA

A number after a word is its weight among the new words of its class, else 1.  The words below a word in brackets are
its class: they are said where the language model expects that word.  A word with several pronunciations has several
lines.  Empty lines and lines that begin with # are ignored.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from readers.common.text import canonical, is_number, read_rows
from readers.errors import FormatError


@dataclass
class NewWord:
    """What is known of a word to add.

    Attributes
    ----------
    pronunciations : list of tuple of str
        Empty for a word without one.
    weight : float or None
        Its share of the probability of its class, relative to those of the other new words; None if not given.
    word_class : str
        The word of the language model in whose place it is said; "" for the unknown or the rarest word.
    """

    pronunciations: list[tuple[str, ...]] = field(default_factory=list)
    weight: float | None = None
    word_class: str = ""

    def add(self, fields: Sequence[str], where: str) -> None:
        """Add what follows the word on a line.  Raises FormatError for a weight that is not positive, or another."""
        if fields and is_number(fields[0]):
            weight = float(fields[0])
            if not 0 < weight < math.inf:
                raise FormatError(f"{where}: weight {fields[0]}; expected a number above 0")
            if self.weight not in (None, weight):
                raise FormatError(f"{where}: weight {fields[0]}, before {self.weight:g}; expected one for each word")
            self.weight = weight
            fields = fields[1:]
        if fields and tuple(fields) not in self.pronunciations:
            self.pronunciations.append(tuple(fields))

    @property
    def share(self) -> float:
        """The weight; 1 if none is given."""
        return 1.0 if self.weight is None else self.weight

    def completed_by(self, earlier: "NewWord") -> "NewWord":
        """Return this entry with the weight and the class of an earlier one where it has none."""
        weight = earlier.weight if self.weight is None else self.weight
        return NewWord(self.pronunciations, weight, self.word_class or earlier.word_class)


def read_new_words(path: str | Path, word_class: str = "") -> dict[str, NewWord]:
    """Read a list of words.

    Parameters
    ----------
    path : path
        File with lines `WORD`, `WORD phone phone ...`, `WORD weight ...` and `[CLASS]`.
    word_class : str
        Class of the words above the first one.

    Returns
    -------
    dict of str to NewWord
        In file order.

    Raises
    ------
    FormatError
        For a file that is not UTF-8 or has no word, a word in two classes, and weights as `NewWord.add`.
    OSError
    """
    words: dict[str, NewWord] = {}
    word_class = canonical(word_class)
    for where, (word, *fields) in read_rows(path, comment="#"):
        if not fields and len(word) > 2 and word[0] == "[" and word[-1] == "]":
            word_class = canonical(word[1:-1])
            continue
        entry = words.setdefault(canonical(word), NewWord(word_class=word_class))
        if entry.word_class != word_class:
            raise FormatError(f"{where}: {word!r} is already in class {entry.word_class!r}; expected it in one class")
        entry.add(fields, where)
    if not words:
        raise FormatError(f"{path}: no words; expected one per line, with its pronunciation or without")
    return words
