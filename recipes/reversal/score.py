"""Counts of correct sequences by length, and of wrong tokens."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from acoustic.actions.decode_pairs import edit_distance
from readers.common.text import read_lines
from readers.errors import FormatError


@dataclass
class Score:
    """tokens: number of target tokens; errors: minimum edits; sequences, exact: counts by length of the source."""

    tokens: int = 0
    errors: int = 0
    sequences: Counter[int] = field(default_factory=Counter)
    exact: Counter[int] = field(default_factory=Counter)

    def add(self, source: list[str], target: list[str], output: list[str]) -> None:
        self.tokens += len(target)
        self.errors += edit_distance(output, target)
        self.sequences[len(source)] += 1
        self.exact[len(source)] += output == target

    def lines(self) -> Iterator[str]:
        """Yield lines `length 3: 99 of 100`, then the total; percentages are rounded down, so 100 means all."""
        for length in sorted(self.sequences):
            yield f"length {length}: {self.exact[length]} of {self.sequences[length]}"
        total = self.sequences.total()
        exact = self.exact.total()
        wrong = 100 * self.errors / max(self.tokens, 1)
        yield (
            f"exact {1000 * exact // total / 10:.1f}% (test, {total} sequences, {self.tokens} tokens, {wrong:.1f}% of "
            "them wrong)"
        )


def score(source: Path, target: Path, output: Path) -> Score:
    """Compare outputs with targets, line by line.  Raises FormatError if the numbers of lines differ."""
    texts = [[line.split() for line in read_lines(path)] for path in (source, target, output)]
    if len({len(text) for text in texts}) != 1 or not texts[0]:
        raise FormatError(
            f"{output}: {len(texts[2])} lines, for {len(texts[0])} sources and {len(texts[1])} targets; expected equal "
            "numbers"
        )
    result = Score()
    for lines in zip(*texts):
        result.add(*lines)
    return result
