"""Words with digits, such as 24th and mp3, as they are read: twenty fourth, mp three.

The rules are those of `argonaut lm normalise`.
"""

import re
from collections.abc import Container
from functools import cache

from decoder.lm.texts.rules import TABLES, Rules
from readers.common.text import canonical

NUMBERS = range(1, 21)
_DIGIT = re.compile(r"\d")


def language_of(words: Container[str]) -> str | None:
    """Return the language whose rules read digits: the one that has most of its numbers up to twenty among some words.

    Parameters
    ----------
    words : container of str
        Lower case.

    Returns
    -------
    str or None
        A key of `TABLES`.
    """
    for language in TABLES:
        names = {_rules(language).apply(str(number)).strip() for number in NUMBERS}
        if sum(name in words for name in names) > len(names) / 2:
            return language
    return None


def read_digits(word: str, language: str | None) -> list[str]:
    """Return the words that are read for a word with digits.

    Parameters
    ----------
    word : str
    language : str or None
        Of `language_of`; None or an unknown one for digits that cannot be read.

    Returns
    -------
    list of str
        The word itself if it has no digits.
    """
    if language not in TABLES or not _DIGIT.search(word):
        return [word]
    return canonical(_rules(language).apply(word)).split() or [word]


@cache
def _rules(language: str) -> Rules:
    return Rules(TABLES[language])
