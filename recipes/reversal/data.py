"""The text of the recipe: strings of digits and their reversals, or the user's own pairs.

A directory of pairs holds train, dev and test, each as two files, NAME.source and NAME.target: one sequence per
line, with blanks between its tokens; line n of one file belongs to line n of the other.  For
grapheme-to-phoneme conversion the source has letters and the target has phones.
"""

from pathlib import Path

import numpy as np

from readers.common.files import write_lines
from readers.common.text import read_lines
from readers.errors import FormatError

PARTS = ("train", "dev", "test")
SIDES = ("source", "target")
BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
LENGTHS = range(1, 9)
MAX_STRINGS = 10000  # strings per length
HELD_OUT = 0.1  # fraction of the strings of a length for dev, and for test
MAX_HELD_OUT = 125  # at most, per length

Pair = tuple[list[str], list[str]]


def reversals(seed: int) -> dict[str, list[Pair]]:
    """Return strings of each length, all of them or MAX_STRINGS random ones; no string is in two sets."""
    rng = np.random.default_rng(seed)
    parts: dict[str, list[Pair]] = {part: [] for part in PARTS}
    for length in LENGTHS:
        count = min(10**length, MAX_STRINGS)
        numbers = rng.choice(10**length, count, replace=False) if length < 7 else _distinct(rng, 10**length, count)
        held_out = min(max(1, int(HELD_OUT * count)), MAX_HELD_OUT)
        for position, number in enumerate(numbers):
            part = "test" if position < held_out else "dev" if position < 2 * held_out else "train"
            digits = list(f"{number:0{length}d}")
            parts[part].append((digits, digits[::-1]))
    for pairs in parts.values():
        rng.shuffle(pairs)
    return parts


def _distinct(rng: np.random.Generator, below: int, count: int) -> np.ndarray:
    """Return `count` distinct random integers below `below`, without listing all of them."""
    numbers = np.unique(rng.integers(0, below, 2 * count))
    return rng.permutation(numbers)[:count]


def read_pairs(directory: Path) -> dict[str, list[Pair]]:
    """Return the pairs of a directory; pairs with an empty side are left out.  Raises FormatError and OSError."""
    parts = {}
    for part in PARTS:
        texts = [[line.split() for line in read_lines(directory / f"{part}.{side}")] for side in SIDES]
        if len(texts[0]) != len(texts[1]):
            raise FormatError(
                f"{directory / part}.target: {len(texts[1])} lines; expected {len(texts[0])}, as in {part}.source"
            )
        parts[part] = [(source, target) for source, target in zip(*texts) if source and target]
        if not parts[part]:
            raise FormatError(f"{directory / part}.source: no sequence; expected at least one")
    return parts


def write_pairs(parts: dict[str, list[Pair]], out: Path) -> None:
    """Write NAME.source and NAME.target for each set, and the vocabularies source.words and target.words."""
    out.mkdir(parents=True, exist_ok=True)
    for k, side in enumerate(SIDES):
        for part, pairs in parts.items():
            write_lines(out / f"{part}.{side}", (" ".join(pair[k]) for pair in pairs))
        words = {word for pair in parts["train"] for word in pair[k]} - {BEGIN, END, UNKNOWN}
        write_lines(out / f"{side}.words", [BEGIN, END, UNKNOWN, *sorted(words)])
