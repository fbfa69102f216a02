"""N-best lists as text: what a recogniser thought of, with its scores.

A line a hypothesis: `UTTERANCE ACOUSTIC LM N WORD1 ... WORDN`, those of an utterance together, the best first; after
the name the columns are SRILM's.  Scores are natural logs; ACOUSTIC holds everything but the language model (scaled as
in the search, with penalties), LM the unscaled n-gram probability.  `#` begins a comment line.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from readers.common.files import atomic_write
from readers.common.text import is_count, read_lines
from readers.errors import FormatError

SCORE_COLUMNS = ("acoustic", "lm")
LINE = "`utterance acoustic lm number-of-words word ...`"


@dataclass(frozen=True)
class Hypothesis:
    """words without <s> and </s>; acoustic, lm: natural logs."""

    words: tuple[str, ...]
    acoustic: float
    lm: float


Lists = dict[str, list[Hypothesis]]  # utterance -> hypotheses


def read_nbest(path: str | os.PathLike) -> Lists:
    """Utterances in the order of the file.

    Raises FormatError, with file and line, for a malformed line, a score that is no finite number, another number of
    words than is said, and an utterance whose lines do not stand together.
    """
    lists: Lists = {}
    last = ""
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split()
        if not fields or line.startswith("#"):
            continue
        where = f"{path}:{number}"
        if len(fields) < 4 or not is_count(fields[3]):
            raise FormatError(f"{where}: {line.strip()[:60]!r}; expected {LINE}")
        utterance, *scores, count = fields[:4]
        words = tuple(fields[4:])
        if len(words) != int(count):
            raise FormatError(f"{where}: {len(words)} words; expected {count}, as the line says")
        if utterance != last and utterance in lists:
            raise FormatError(f"{where}: {utterance} again; expected the lines of an utterance together")
        values = [_score(text, where, name) for name, text in zip(SCORE_COLUMNS, scores)]
        lists.setdefault(utterance, []).append(Hypothesis(words, *values))
        last = utterance
    if not lists:
        raise FormatError(f"{path}: no hypotheses; expected lines {LINE}")
    return lists


def write_nbest(path: str | os.PathLike, lists: Mapping[str, Sequence[Hypothesis]]) -> None:
    """Scores are written so that they are read back the same.  Raises FormatError for a name with a blank in it."""
    with atomic_write(path, "w") as file:
        for utterance, hypotheses in lists.items():
            if utterance.split() != [utterance] or utterance.startswith("#"):
                raise FormatError(f"{path}: utterance {utterance!r}; expected a name without blanks, no # first")
            for one in hypotheses:
                columns = (utterance, repr(float(one.acoustic)), repr(float(one.lm)), str(len(one.words)), *one.words)
                file.write(" ".join(columns) + "\n")


def _score(text: str, where: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FormatError(f"{where}: {name} score {text!r}; expected a finite number, a natural log")
    return value
