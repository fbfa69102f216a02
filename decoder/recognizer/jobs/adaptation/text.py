"""Reads the text to which a bundle is adapted, in the words of its dictionary."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from decoder.g2p.training import NO_WORD
from decoder.lm.options import TextFiles
from decoder.lm.texts.reading import read_sentences
from readers.common.report import Log
from readers.corpora.words import WordForms
from readers.dictionaries.case import Case, best_case
from readers.errors import FormatError

EVERY = 10  # one sentence of that many is held out
FEWEST = 2 * EVERY  # sentences; of fewer, none is held out


@dataclass(frozen=True)
class AdaptationText:
    """A text in words.

    Attributes
    ----------
    sentences : list of tuple of str
    case : {"keep", "upper", "lower"}
        To which its words were changed.
    """

    sentences: list[tuple[str, ...]]
    case: Case

    @property
    def words(self) -> Counter[str]:
        """How often each word occurs."""
        return Counter(word for sentence in self.sentences for word in sentence)

    @property
    def held_out(self) -> list[tuple[str, ...]]:
        """Every tenth sentence; none of a short text."""
        return self.sentences[EVERY - 1 :: EVERY] if len(self.sentences) >= FEWEST else []

    @property
    def other(self) -> list[tuple[str, ...]]:
        """The sentences that are not held out."""
        return [words for n, words in enumerate(self.sentences, 1) if n % EVERY] if self.held_out else self.sentences


def read_adaptation_text(
    options: TextFiles, known: Collection[str], case: Case | Literal["auto"], note: Log
) -> AdaptationText:
    """Read a text, without punctuation.

    Parameters
    ----------
    options : TextFiles
    known : collection of str
        Words of the dictionary.  Others in brackets, such as [noise], are left out.
    case : {"auto", "keep", "upper", "lower"}
        To which words are changed; auto: in which the dictionary has the most of them.
    note : callable
        Receives doubts about the kind of the files.

    Returns
    -------
    AdaptationText

    Raises
    ------
    FormatError
        For a file that is no text, and for one without words.
    OSError
    """
    lines = [" ".join(words) for words in read_sentences(options, note)]
    if case == "auto":
        as_written = WordForms()
        case = best_case(Counter(word for line in lines for word in as_written.split(line)), known)
    forms = WordForms(case, known=known)
    sentences = []
    for line in lines:
        words = tuple(word for word in forms.split(line) if word in known or not NO_WORD.fullmatch(word))
        if words:
            sentences.append(words)
    if not sentences:
        raise FormatError(f"{' + '.join(map(str, options.files))}: no words; expected sentences, one per line")
    return AdaptationText(sentences, case)
