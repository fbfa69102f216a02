"""Trains an n-gram model of graphones on the words of a dictionary."""

import re
from collections.abc import Callable, Container, Iterable
from typing import NamedTuple

import numpy as np

from decoder.g2p.alignment import Graphone, align
from decoder.g2p.digits import language_of
from decoder.lm.estimation import estimate
from decoder.lm.language_model import LanguageModel
from readers.common.report import Progress, silent
from readers.common.text import canonical
from readers.errors import FormatError
from readers.htk.dictionary import Pronunciation

SEPARATOR = "\t"  # between the letter and the phones in the name of a graphone
MOST_LETTERS = 100  # of a word
FEWEST_PHONES, MOST_PHONES = 2, 5  # of a graphone, at most
DIVISIBLE = 0.99  # part of the words for which the phones of a graphone must suffice
NO_WORD = re.compile(r"<.*>|\[.*\]|\{.*\}|!(SIL|NULL|ENTER|EXIT|SENT_START|SENT_END)")


class TrainingWords(NamedTuple):
    """What of a dictionary a model can be trained on.

    Attributes
    ----------
    words : list of (letters, phones)
        Without repetitions.
    most_phones : int
        Most phones of a letter.
    left_out : list of (word, reason)
    """

    words: list[tuple[str, tuple[str, ...]]]
    most_phones: int
    left_out: list[tuple[str, str]]


def letters_of(word: str) -> str:
    """Return the letters of a word, which do not depend on case and on how Unicode composes them (NFC).

    Parameters
    ----------
    word : str

    Returns
    -------
    str
    """
    return canonical(canonical(word).lower())


def select_words(entries: Iterable[Pronunciation]) -> TrainingWords:
    """Return the words of a dictionary that a model is trained on.

    Left out are words in angle or square brackets, words without phones, and those that have more phones than their
    letters can stand for: two for each letter, or as many more, up to five, as 99 % of the words need.

    Parameters
    ----------
    entries : iterable of Pronunciation

    Returns
    -------
    TrainingWords
    """
    words = {}
    left_out = []
    for entry in entries:
        letters = letters_of(entry.word)
        if NO_WORD.fullmatch(entry.word):
            left_out.append((entry.word, "no word of the language"))
        elif not entry.phones:
            left_out.append((entry.word, "no phones"))
        elif not 0 < len(letters) <= MOST_LETTERS or SEPARATOR in letters:
            left_out.append((entry.word, f"{len(letters)} letters; expected 1 to {MOST_LETTERS}, and no tabs"))
        else:
            words[letters, entry.phones] = entry.word
    needed = [-(-len(phones) // len(letters)) for letters, phones in words]
    most = int(np.quantile(needed, DIVISIBLE, method="inverted_cdf")) if needed else 0
    most = min(max(most, FEWEST_PHONES), MOST_PHONES)
    usable = []
    for (letters, phones), word in words.items():
        if len(phones) <= most * len(letters):
            usable.append((letters, phones))
        else:
            left_out.append((word, f"{len(phones)} phones; expected at most {most} for each of {len(letters)} letters"))
    return TrainingWords(usable, most, left_out)


class DividedWords(NamedTuple):
    """The words of a dictionary, and the best division of each into graphones.

    Attributes
    ----------
    words : list of (letters, phones)
        Without repetitions.
    graphones : list of list of str
        The names of the graphones of each word.
    vocabulary : list of str
        All of them, sorted, so that those of a letter are neighbours.
    """

    words: list[tuple[str, tuple[str, ...]]]
    graphones: list[list[str]]
    vocabulary: list[str]

    @property
    def spellings(self) -> set[str]:
        """The letters of each word."""
        return {letters for letters, _ in self.words}

    @property
    def facts(self) -> dict[str, int | str]:
        """Numbers of pronunciations and words, and the language of the digits, if there is one."""
        spellings = self.spellings
        language = language_of(spellings)
        digits = {} if language is None else {"digits": language}
        return {"pronunciations": len(self.words), "words": len(spellings), **digits}

    def estimate(self, order: int, without: Container[int] = ()) -> LanguageModel:
        """Return the n-gram model of the graphones.

        Parameters
        ----------
        order : int
            The longest n-grams.
        without : container of int
            Numbers of words that it is not estimated on.

        Returns
        -------
        LanguageModel
        """
        sentences = (graphones for number, graphones in enumerate(self.graphones) if number not in without)
        return LanguageModel.from_arpa(estimate(sentences, order, vocabulary=self.vocabulary))


def divide_words(
    entries: Iterable[Pronunciation],
    passes: int,
    threads: int | None = None,
    on_left_out: Callable[[str, str], None] = silent,
    progress: Progress = silent,
) -> DividedWords:
    """Divide the phones of the words of a dictionary among their letters.

    Parameters
    ----------
    entries : iterable of Pronunciation
    passes : int
        Passes of the EM algorithm.
    threads : int, optional
        By default the available cores.  The result does not depend on it.
    on_left_out : callable
        Called with each word that cannot be divided, and the reason.
    progress : callable
        Called as ``progress(passes done, passes)``.

    Returns
    -------
    DividedWords

    Raises
    ------
    FormatError
        Without words.
    """
    selected = select_words(entries)
    for word, reason in selected.left_out:
        on_left_out(word, reason)
    if not selected.words:
        raise FormatError("no words to train on; expected words of letters with phones")
    alignment = align(selected.words, selected.most_phones, passes, threads, progress)
    names = list(map(name_of, alignment.graphones))
    graphones = [[names[graphone] for graphone in word] for word in alignment.words]
    used = np.unique(np.concatenate(alignment.words))
    return DividedWords(selected.words, graphones, sorted({names[graphone] for graphone in used}))


def name_of(graphone: Graphone) -> str:
    """The word of the n-gram model that stands for a graphone."""
    return SEPARATOR.join((graphone.letter, *graphone.phones))
