"""Precision, recall and F1 of labelled phrases, by the rules of conlleval, the scorer of the CoNLL-2000 shared task.

A label is `O`, or `B-` or `I-` and the type of a phrase.  A phrase begins at every B-, and at an I- after `O`, after
another type or at the beginning of a sentence; it continues with I- of its type.  A phrase is correct if a phrase of
the reference has the same first word, last word and type.
Source: the scorer's description, https://www.clips.uantwerpen.be/conll2000/chunking/output.html, and the published
list of the tags between which a phrase begins or ends.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from readers.errors import FormatError


@dataclass(frozen=True, order=True)
class Phrase:
    """Words first to last of a sentence, inclusive, counted from 0."""

    first: int
    last: int
    kind: str


@dataclass(frozen=True)
class Rates:
    """Numbers of phrases in_reference, found and right.  The rates are in percent; 0 if the denominator is 0."""

    in_reference: int
    found: int
    right: int

    @property
    def precision(self) -> float:
        return _percent(self.right, self.found)

    @property
    def recall(self) -> float:
        return _percent(self.right, self.in_reference)

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


@dataclass
class Score:
    """Counts, in total, for each type of phrase, and for each pair of labels (reference, hypothesis)."""

    num_sentences: int = 0
    num_right_sentences: int = 0  # sentences with only correct labels
    in_reference: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    labels: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, reference: Sequence[str], hypothesis: Sequence[str], where: str = "sentence") -> None:
        """Add one sentence, with a label for each word.  Raises FormatError."""
        if len(reference) != len(hypothesis):
            raise FormatError(f"{where}: {len(hypothesis)} labels; expected {len(reference)}, one for each word")
        true = phrases(reference, where)
        labelled = phrases(hypothesis, where)
        self.num_sentences += 1
        self.num_right_sentences += list(reference) == list(hypothesis)
        self.in_reference.update(phrase.kind for phrase in true)
        self.found.update(phrase.kind for phrase in labelled)
        self.right.update(phrase.kind for phrase in set(true) & set(labelled))
        self.labels.update(zip(reference, hypothesis))

    @property
    def num_words(self) -> int:
        return self.labels.total()

    @property
    def accuracy(self) -> float:
        """Correct labels in percent of the words."""
        right = sum(count for (true, hypothesis), count in self.labels.items() if true == hypothesis)
        return _percent(right, self.num_words)

    @property
    def total(self) -> Rates:
        return Rates(self.in_reference.total(), self.found.total(), self.right.total())

    @property
    def f1(self) -> float:
        return self.total.f1

    def of_kinds(self) -> dict[str, Rates]:
        kinds = sorted(self.in_reference | self.found)
        return {kind: Rates(self.in_reference[kind], self.found[kind], self.right[kind]) for kind in kinds}

    def report(self) -> str:
        """Return the lines that conlleval prints."""
        total = self.total
        lines = [
            f"processed {self.num_words} tokens with {total.in_reference} phrases; "
            f"found: {total.found} phrases; correct: {total.right}.",
            f"accuracy: {self.accuracy:6.2f}%; {_rates_text(total)}",
        ]
        lines += [f"{kind:>17}: {_rates_text(rates)}  {rates.found}" for kind, rates in self.of_kinds().items()]
        return "\n".join(lines) + "\n"


def score(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Score:
    """Score pairs of the reference and hypothesis labels of sentences.  Raises FormatError."""
    result = Score()
    for number, (reference, hypothesis) in enumerate(pairs, 1):
        result.add(reference, hypothesis, f"sentence {number}")
    return result


def phrases(labels: Sequence[str], where: str = "sentence") -> list[Phrase]:
    """Return the phrases of one sentence, in order.  Raises FormatError for an invalid label."""
    phrases_found: list[Phrase] = []
    first = 0  # of the current phrase; "" for none
    kind = ""
    for index, label in enumerate(labels):
        letter, dash, label_kind = label.partition("-")
        if label != "O" and not (letter in ("B", "I") and dash and label_kind):
            raise FormatError(f"{where}: label {label!r}; expected O, or B- or I- and a type")
        if letter == "I" and label_kind == kind:
            continue
        if kind:
            phrases_found.append(Phrase(first, index - 1, kind))
        first = index
        kind = label_kind
    if kind:
        phrases_found.append(Phrase(first, len(labels) - 1, kind))
    return phrases_found


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def _rates_text(rates: Rates) -> str:
    return f"precision: {rates.precision:6.2f}%; recall: {rates.recall:6.2f}%; FB1: {rates.f1:6.2f}"
