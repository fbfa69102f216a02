"""Pronunciation scores that experts gave: of sentences, words and phones.

Read are the files of the corpus speechocean762, `scores.json`, an object with an entry for each utterance, and lines
with an object each, which has the name of its utterance::

    {"utterance": "000010011", "accuracy": 8, "words": [{"text": "WE", "accuracy": 10, "phones": ["W", "IY0"],
     "phones-accuracy": [2.0, 1.8]}]}

An accuracy is a number or a list with the number of each expert, of which the mean is taken.  `phones` may be null,
where the experts differ about them.  Other keys are ignored.

References
----------
Zhang et al., speechocean762: an open-source non-native English speech corpus for pronunciation assessment, Interspeech
2021.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from readers.common.text import canonical, parse_json, parse_object, read_lines
from readers.errors import FormatError

MOST, MOST_OF_PHONES = 10.0, 2.0  # the best scores of sentences and words, and of phones
UTTERANCE, ACCURACY, WORDS, TEXT, PHONES, PHONE_SCORES = (
    "utterance", "accuracy", "words", "text", "phones", "phones-accuracy",
)  # fmt: skip


@dataclass(frozen=True)
class WordScores:
    """The scores of a word.

    Attributes
    ----------
    text : str
    score : float
        From 0 to 10.
    phones : tuple of str
        As they should be, with or without stress; empty if the experts did not agree about them.
    phone_scores : tuple of float
        Of each phone, from 0 (wrong or missing) through 1 (a heavy accent) to 2 (right).
    """

    text: str
    score: float
    phones: tuple[str, ...] = ()
    phone_scores: tuple[float, ...] = ()


@dataclass(frozen=True)
class SentenceScores:
    """The scores of a sentence.

    Attributes
    ----------
    score : float
        From 0 to 10.
    words : tuple of WordScores
    where : str
        File and line, for messages.
    """

    score: float
    words: tuple[WordScores, ...]
    where: str


def read_expert_scores(path: str | Path) -> dict[str, SentenceScores]:
    """Read the scores of the sentences of a corpus.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    dict of str to SentenceScores
        By name of the utterance.

    Raises
    ------
    FormatError
        With file and line, for anything that is not as expected.
    OSError
    """
    sentences: dict[str, SentenceScores] = {}
    for where, name, entry in read_entries(Path(path)):
        if name in sentences:
            raise FormatError(f"{where}: {name} again; expected each utterance once, it is in {sentences[name].where}")
        sentences[name] = _sentence(entry, where)
    if not sentences:
        raise FormatError(f"{path}: no scores; expected at least those of one utterance")
    return sentences


def read_entries(path: Path) -> Iterator[tuple[str, str, Any]]:
    """Yield file and line, utterance, and scores as they are in the file.

    Parameters
    ----------
    path : Path

    Yields
    ------
    where : str
    name : str
    entry : object
        Not checked.

    Raises
    ------
    FormatError, OSError
    """
    lines = list(read_lines(path))
    if _is_entry(next(filter(str.strip, lines), "")):
        for number, line in enumerate(lines, 1):
            if line.strip():
                where = f"{path}:{number}"
                entry = parse_object(line, where)
                name = entry.get(UTTERANCE)
                if not isinstance(name, str) or not name:
                    raise FormatError(f"{where}: {UTTERANCE} {name!r}; expected a name")
                yield where, name, entry
        return
    text = "\n".join(lines)
    try:
        content = parse_json(text)
    except ValueError as fault:
        number, what = getattr(fault, "lineno", 1), getattr(fault, "msg", str(fault))
        raise FormatError(f"{path}:{number}: {what}; expected a JSON object of utterances") from fault
    if not isinstance(content, dict):
        raise FormatError(f"{path}:1: {text[:40]!r}; expected a JSON object of utterances")
    starts = iter(enumerate(lines, 1))
    for name, entry in content.items():
        key = json.dumps(name) + ":"
        number = next((number for number, line in starts if key in line), 1)
        yield f"{path}:{number}", name, entry


def _is_entry(line: str) -> bool:
    """Return whether a line is an object with the name of an utterance."""
    try:
        entry = parse_json(line)
    except ValueError:
        return False
    return isinstance(entry, dict) and UTTERANCE in entry


def _sentence(entry: Any, where: str) -> SentenceScores:
    words = entry.get(WORDS) if isinstance(entry, dict) else None
    if not isinstance(words, list) or not words:
        raise FormatError(f"{where}: {WORDS} {str(words)[:40]}; expected a list of objects")
    return SentenceScores(_score(entry, where), tuple(_word(word, where) for word in words), where)


def _word(entry: Any, where: str) -> WordScores:
    text = entry.get(TEXT) if isinstance(entry, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise FormatError(f"{where}: {TEXT} of a word is {str(text)[:40]!r}; expected the word")
    where_word = f"{where}: {text[:40]}"
    phones = entry.get(PHONES)
    scores = entry.get(PHONE_SCORES)
    if phones is None:
        return WordScores(canonical(text), _score(entry, where_word))
    if not isinstance(phones, list) or not all(isinstance(phone, str) and phone for phone in phones):
        raise FormatError(f"{where_word}: {PHONES} {str(phones)[:40]}; expected a list of phones, or null")
    if not isinstance(scores, list) or len(scores) != len(phones):
        raise FormatError(f"{where_word}: {PHONE_SCORES} {str(scores)[:40]}; expected {len(phones)} numbers")
    numbers = tuple(_mean(score, MOST_OF_PHONES, PHONE_SCORES, where_word) for score in scores)
    return WordScores(canonical(text), _score(entry, where_word), tuple(phones), numbers)


def _score(entry: Mapping[str, Any], where: str) -> float:
    return _mean(entry.get(ACCURACY), MOST, ACCURACY, where)


def _mean(value: Any, most: float, name: str, where: str) -> float:
    """Return a number, or the mean of those of several experts."""
    numbers = value if isinstance(value, list) else [value]
    if not numbers or not all(type(number) in (int, float) and 0 <= number <= most for number in numbers):
        raise FormatError(f"{where}: {name} {str(value)[:40]}; expected numbers from 0 to {most:g}")
    return float(sum(numbers) / len(numbers))
