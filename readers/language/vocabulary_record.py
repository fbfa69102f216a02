"""The vocabularies that a model was trained with, in the metadata of its file::

    {"vocabularies": [{"inputs": ["features", "labels"], "words": ["</s>", "the", ...],
                       "counts": [42068, 50770, ...], "classes": [0, 0, ...]}]}

`inputs` are the network's inputs whose rows, or word numbers, are those of the words.  `counts` and `classes` are
absent if they are unknown.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from readers.common.text import canonical
from readers.errors import FormatError
from readers.language.vocabulary import VocabularyWord

ENTRY = "vocabularies"  # in the metadata


@dataclass(frozen=True)
class VocabularyRecord:
    """The words that the numbers of an input stand for.

    Attributes
    ----------
    words : tuple of str
        In the order of their numbers, from 0.
    counts : tuple of int
        How often each occurs in the training text; empty if unknown.
    classes : tuple of int
        The class of each word, never decreasing; empty for words without classes.
    """

    words: tuple[str, ...]
    counts: tuple[int, ...] = ()
    classes: tuple[int, ...] = ()

    @classmethod
    def of_words(cls, words: Sequence[VocabularyWord], with_classes: bool = True) -> "VocabularyRecord":
        """Return the record of a vocabulary; the counts are left out if there is none, the classes if not wanted."""
        counts = tuple(word.count for word in words)
        classes = tuple(word.word_class for word in words) if with_classes else ()
        return cls(tuple(word.word for word in words), counts if any(counts) else (), classes)

    def entries(self) -> list[VocabularyWord]:
        """Return the words with their counts, 0 if unknown, and classes, 0 if there are none."""
        empty = (0,) * len(self.words)
        return [VocabularyWord(*entry) for entry in zip(self.words, self.counts or empty, self.classes or empty)]

    def mismatch(self, where: str, expected: "VocabularyRecord", why: str) -> str:
        """Return what is wrong with these words where `expected` should be, or an empty text.

        A vocabulary may have fewer words than expected, the first ones. Classes are compared if both are known.
        """
        for number, (word, expected_word) in enumerate(zip(self.words, expected.words)):
            if word != expected_word:
                return f"{where}: word {number} is {word!r}; expected {expected_word!r}, {why}"
        if len(self.words) > len(expected.words):
            return f"{where}: {len(self.words)} words; expected {len(expected.words)}, {why}"
        for word, number, expected_number in zip(self.words, self.classes, expected.classes):
            if number != expected_number:
                return f"{where}: word {word!r} is in class {number}; expected class {expected_number}, {why}"
        return ""

    def text(self) -> str:
        """Return a description for people: `10000 words in 50 classes`."""
        return f"{len(self.words)} words" + (f" in {self.classes[-1] + 1} classes" if self.classes else "")


def vocabularies_as_json(records: Mapping[str, VocabularyRecord]) -> list[dict[str, Any]]:
    """Return the records of inputs as the value of the metadata entry, each vocabulary once."""
    inputs: dict[VocabularyRecord, list[str]] = {}
    for name, record in records.items():
        inputs.setdefault(record, []).append(name)
    return [
        {"inputs": names, "words": list(record.words)}
        | {key: list(values) for key, values in (("counts", record.counts), ("classes", record.classes)) if values}
        for record, names in inputs.items()
    ]


def parse_vocabularies(value: Any, names: Container[str] | None = None) -> dict[str, VocabularyRecord]:
    """Return the records by name of the input, from the value of the metadata entry.

    Raises FormatError for damaged records, and for inputs that are not among `names`, if these are given.
    """
    records: dict[str, VocabularyRecord] = {}
    for number, entry in enumerate(_checked(value, ENTRY, list)):
        where = f"{ENTRY}[{number}]"
        _checked(entry, where, dict)
        words = _checked(entry.get("words"), f"{where}: words", list)
        words = [canonical(_checked(word, f"{where}: word", str)) for word in words]
        if not words or len(set(words)) < len(words) or any(word.split() != [word] for word in words):
            raise FormatError(f"{where}: words; expected different words without blanks, at least one")
        counts, classes = (_numbers(entry, key, where, len(words)) for key in ("counts", "classes"))
        if any(second < first for first, second in pairwise(classes)):
            raise FormatError(f"{where}: classes; expected the words of each class together, classes in order")
        record = VocabularyRecord(tuple(words), counts, classes)
        for name in _checked(entry.get("inputs"), f"{where}: inputs", list):
            if not isinstance(name, str) or name in records or (names is not None and name not in names):
                raise FormatError(f"{where}: input {str(name)[:60]!r}; expected inputs of the network, each once")
            records[name] = record
    return records


def _numbers(entry: dict[str, Any], key: str, where: str, size: int) -> tuple[int, ...]:
    numbers = _checked(entry.get(key, []), f"{where}: {key}", list)
    if any(type(number) is not int or not 0 <= number < 1 << 53 for number in numbers):
        raise FormatError(f"{where}: {key}; expected numbers >= 0")
    if numbers and len(numbers) != size:
        raise FormatError(f"{where}: {len(numbers)} {key}; expected {size}, one for each word")
    return tuple(numbers)


def _checked(value: Any, where: str, kind: type) -> Any:
    if not isinstance(value, kind):
        raise FormatError(f"{where}: {type(value).__name__}; expected a {kind.__name__}")
    return value
