"""Vocabularies of class-based language models: words are counted, numbered, and divided into classes by frequency.

Source: CNTK book 3.5.9 and 3.4.3 (the four columns of the table).  The division into classes is that of CNTK, after
Mikolov: words in order of decreasing frequency fill the classes, so that each class has about the same share of the
sum of the square roots of the frequencies.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from readers.common.files import write_lines
from readers.common.report import Figures
from readers.common.text import is_count, read_lines
from readers.errors import FormatError


@dataclass(frozen=True)
class VocabularyWord:
    """A word of a vocabulary; its number is its index there.

    Attributes
    ----------
    word : str
    count : int
        How often it occurs.
    word_class : int
        Number of its class, from 0.
    """

    word: str
    count: int
    word_class: int = 0


def count_words(lines: Iterable[str], begin: str, end: str) -> Counter[str]:
    """Count the words of a text with one sentence per line; blanks and tabs separate words.

    The marks `begin` and `end` are added to sentences without them.  If the two are equal, the first word of a sentence
    is not counted, because the end of a sentence is the beginning of the next one.
    """
    counts: Counter[str] = Counter()
    first = 1 if begin == end else 0
    for line in lines:
        tokens = [token for token in line.replace("\t", " ").split(" ") if token]
        if begin not in tokens[:-1]:
            tokens.insert(0, begin)
        if end not in tokens[1:]:
            tokens.append(end)
        counts.update(tokens[first:])
    return counts


def num_above(counts: Counter[str], cutoff: int) -> int:
    """Return the number of words that occur more than `cutoff` times; the number of all words if cutoff <= 0."""
    return sum(count > cutoff for count in counts.values()) if cutoff > 0 else len(counts)


def all_words(counts: Counter[str]) -> list[VocabularyWord]:
    """Return all words in byte order, in class 0."""
    return [VocabularyWord(word, counts[word]) for word in sorted(counts, key=lambda word: word.encode())]


def classed_words(counts: Counter[str], size: int, num_classes: int, unknown: str) -> list[VocabularyWord]:
    """Return the size - 1 most frequent words and `unknown`, which replaces the others, by decreasing count, in
    classes.

    Words of equal count are in byte order (CNTK: in any order).  As in CNTK, a word that alone fills more than a class
    begins the next one, so a class may be empty.
    """
    unlisted = Counter(counts)
    merged = unlisted.pop(unknown, 0)
    ordered = sorted(unlisted, key=lambda word: (-unlisted[word], word.encode()))
    vocabulary = {word: unlisted[word] for word in ordered[: size - 1]}
    vocabulary[unknown] = merged + sum(unlisted[word] for word in ordered[size - 1 :])
    total = sum(vocabulary.values())
    shares = {word: math.sqrt(count / total) for word, count in vocabulary.items()}
    total_share = math.fsum(shares.values())
    words: list[VocabularyWord] = []
    filled = 0.0
    word_class = 0
    for word in sorted(vocabulary, key=lambda word: (-vocabulary[word], word.encode())):
        filled = min(filled + shares[word] / total_share, 1.0)
        if filled > (word_class + 1) / num_classes:
            word_class += 1
        words.append(VocabularyWord(word, vocabulary[word], word_class))
    return words


def first_words(words: Sequence[VocabularyWord], num_classes: int) -> list[int]:
    """Return the number of the first word of each class; 0 for a class without words, as in CNTK."""
    firsts = [0] * num_classes
    for number in range(len(words) - 1, -1, -1):
        firsts[words[number].word_class] = number
    return firsts


def write_vocabulary(path: str | Path, words: Sequence[VocabularyWord]) -> None:
    """Write a vocabulary with four columns: number, count, word, class.

    Parameters
    ----------
    path : path
        File to write.
    words : sequence of VocabularyWord

    References
    ----------
    CNTK book 3.5.9.
    """
    write_lines(path, (f"     {k}\t     {word.count}\t{word.word}\t{word.word_class}" for k, word in enumerate(words)))


def read_vocabulary(path: str | Path) -> list[VocabularyWord]:
    """Read a vocabulary with columns number, count, word, class, or without the count; blank lines are ignored.

    Parameters
    ----------
    path : path
        Text file; numbers begin at 0, classes never decrease, so that the words of a class are adjacent.

    Returns
    -------
    list of VocabularyWord
        In the order of their numbers.

    Raises
    ------
    FormatError
        With file and line, for any violation of this form.

    References
    ----------
    CNTK book 3.4.3.
    """
    words: list[VocabularyWord] = []
    earlier: set[str] = set()
    for number, line in enumerate(read_lines(path), 1):
        fields = [field for field in line.replace("\t", " ").split(" ") if field]
        if not fields:
            continue
        numeric = [*fields[:1], *fields[-1:], *(fields[1:2] if len(fields) == 4 else [])]
        if len(fields) not in (3, 4) or not all(map(is_count, numeric)):
            raise FormatError(f"{path}:{number}: {line.strip()[:60]!r}; expected `number count word class`")
        word = fields[-2]
        word_class = int(fields[-1])
        if int(fields[0]) != len(words) or word in earlier:
            what = f"word {word!r} again" if word in earlier else f"number {fields[0]}"
            raise FormatError(f"{path}:{number}: {what}; expected number {len(words)}, each word once")
        if words and word_class < words[-1].word_class:
            raise FormatError(
                f"{path}:{number}: class {word_class} after class {words[-1].word_class}; expected the words of each "
                "class together, classes in order"
            )
        words.append(VocabularyWord(word, int(fields[1]) if len(fields) == 4 else 0, word_class))
        earlier.add(word)
    if not words:
        raise FormatError(f"{path}: no entries; expected lines `number count word class`")
    return words


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    words = read_vocabulary(path)
    classes = {word.word_class for word in words}
    return [("words", len(words)), ("classes", len(classes)), ("most frequent", words[0].word)]
