"""Vocabularies for class-based language models: words of a text counted, numbered and put into classes by frequency.

Source: CNTK book 3.5.9 and 3.4.3 (the table's four columns); the division into classes is that of the tool, after
Mikolov: words in order of falling frequency fill the classes so that each takes about the same share of the sum of
the square roots of the frequencies.
"""

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from readers.common.files import atomic_write
from readers.common.text import is_count, read_lines
from readers.errors import FormatError


@dataclass(frozen=True)
class VocabularyWord:
    """A word, how often it is there, and its class, from 0; its number is its place in the vocabulary."""

    word: str
    count: int
    word_class: int = 0


def count_words(lines: Iterable[str], begin: str, end: str) -> Counter[str]:
    """Occurrences of each token of a text, a sentence a line; tokens stand between blanks and tabs.

    A sentence gets the marks `begin` and `end` where it lacks them.  When the two are the same, the first token of a
    sentence is not counted: the end of one sentence is the beginning of the next.
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
    """How many words are there more than `cutoff` times; all of them when it is not above 0."""
    return sum(count > cutoff for count in counts.values()) if cutoff > 0 else len(counts)


def all_words(counts: Counter[str]) -> list[VocabularyWord]:
    """Every word, in the order of its bytes, all in class 0."""
    return [VocabularyWord(word, counts[word]) for word in sorted(counts, key=lambda word: word.encode())]


def classed_words(counts: Counter[str], size: int, num_classes: int, unknown: str) -> list[VocabularyWord]:
    """The size - 1 most frequent words and `unknown`, which stands for the rest, by falling count, in classes.

    Words that are as frequent as each other come in the order of their bytes (in the tool: in any).  As in the tool,
    a word that alone fills more than a class begins the next one, so that a class may stay empty.
    """
    rest = Counter(counts)
    merged = rest.pop(unknown, 0)
    ordered = sorted(rest, key=lambda word: (-rest[word], word.encode()))
    kept = {word: rest[word] for word in ordered[: size - 1]}
    kept[unknown] = merged + sum(rest[word] for word in ordered[size - 1 :])
    total = sum(kept.values())
    shares = {word: math.sqrt(count / total) for word, count in kept.items()}
    whole = math.fsum(shares.values())
    words: list[VocabularyWord] = []
    filled, word_class = 0.0, 0
    for word in sorted(kept, key=lambda word: (-kept[word], word.encode())):
        filled = min(filled + shares[word] / whole, 1.0)
        if filled > (word_class + 1) / num_classes:
            word_class += 1
        words.append(VocabularyWord(word, kept[word], word_class))
    return words


def first_words(words: Sequence[VocabularyWord], num_classes: int) -> list[int]:
    """The number of the first word of each class; 0 for a class without words, as in the tool."""
    firsts = [0] * num_classes
    for number in range(len(words) - 1, -1, -1):
        firsts[words[number].word_class] = number
    return firsts


def write_vocabulary(path: str | os.PathLike, words: Sequence[VocabularyWord]) -> None:
    """Four columns: number, count, word, class."""
    with atomic_write(path, "w") as file:
        file.writelines(f"     {k}\t     {one.count}\t{one.word}\t{one.word_class}\n" for k, one in enumerate(words))


def read_vocabulary(path: str | os.PathLike) -> list[VocabularyWord]:
    """Words in order of their numbers: columns number, count, word, class, or without count; numbers from 0, classes
    that never fall, so that the words of a class are neighbours.  A blank line ends nothing and counts for nothing.

    Raises FormatError, with file and line.
    """
    words: list[VocabularyWord] = []
    seen: set[str] = set()
    for number, line in enumerate(read_lines(path), 1):
        fields = [field for field in line.replace("\t", " ").split(" ") if field]
        if not fields:
            continue
        numeric = [*fields[:1], *fields[-1:], *(fields[1:2] if len(fields) == 4 else [])]
        if len(fields) not in (3, 4) or not all(map(is_count, numeric)):
            raise FormatError(f"{path}:{number}: {line.strip()[:60]!r}; expected `number count word class`")
        word, word_class = fields[-2], int(fields[-1])
        if int(fields[0]) != len(words) or word in seen:
            what = f"word {word!r} again" if word in seen else f"number {fields[0]}"
            raise FormatError(f"{path}:{number}: {what}; expected number {len(words)}, each word once")
        if words and word_class < words[-1].word_class:
            raise FormatError(
                f"{path}:{number}: class {word_class} after class {words[-1].word_class}; expected the words of each "
                "class together, classes in order"
            )
        words.append(VocabularyWord(word, int(fields[1]) if len(fields) == 4 else 0, word_class))
        seen.add(word)
    if not words:
        raise FormatError(f"{path}: no entries; expected lines `number count word class`")
    return words
