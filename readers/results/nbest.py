"""N-best lists as text: the hypotheses of each utterance with their scores.

A line is one hypothesis, `UTTERANCE ACOUSTIC LM N WORD1 ... WORDN`; lines of an utterance are adjacent, best first.
After the name, the columns are those of SRILM; `!SENT_START` among the words, which N does not count, begins another
sentence.  Scores are natural logs: ACOUSTIC contains everything except the
language model (scaled as in the search, with penalties), LM is the unscaled n-gram probability.  `#` begins a comment.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from readers.common.files import atomic_write
from readers.common.report import Figures, extent, rows_of
from readers.common.text import SENT_START, is_count, is_number, read_rows, to_number
from readers.errors import FormatError

SCORE_COLUMNS = ("acoustic", "lm")
LINE = "`utterance acoustic lm number-of-words word ...`"


@dataclass(frozen=True)
class Hypothesis:
    """A hypothesis of an n-best list.

    Attributes
    ----------
    words : tuple of str
        Without <s> and </s>.
    acoustic, lm : float
        Natural logs; see the module's description.
    bounds : tuple of int
        Number of words before each sentence after the first one, rising.
    """

    words: tuple[str, ...]
    acoustic: float
    lm: float
    bounds: tuple[int, ...] = ()

    @property
    def sentences(self) -> tuple[tuple[str, ...], ...]:
        """The words of each sentence."""
        edges = pairwise((0, *self.bounds, len(self.words)))
        return tuple(self.words[begin:end] for begin, end in edges)


Lists = dict[str, list[Hypothesis]]  # utterance -> hypotheses


def read_nbest(path: str | Path) -> Lists:
    """Read n-best lists.

    Parameters
    ----------
    path : path
        Text file.

    Returns
    -------
    dict of str to list of Hypothesis
        Utterances in file order.

    Raises
    ------
    FormatError
        With file and line, for a malformed line, a score that is not finite, a wrong number of words, and an utterance
        whose lines are not adjacent.
    """
    lists: Lists = {}
    last = ""
    for where, fields in read_rows(path, comment="#"):
        if len(fields) < 4 or not is_count(fields[3]):
            raise FormatError(f"{where}: {' '.join(fields)[:60]!r}; expected {LINE}")
        utterance, *scores, count = fields[:4]
        words: list[str] = []
        bounds: list[int] = []
        for word in fields[4:]:
            if word == SENT_START:
                bounds.append(len(words))
            else:
                words.append(word)
        if len(words) != int(count):
            raise FormatError(f"{where}: {len(words)} words; expected {count}, as the line says")
        if utterance != last and utterance in lists:
            raise FormatError(f"{where}: {utterance} again; expected adjacent lines for an utterance")
        values = [_score(text, where, name) for name, text in zip(SCORE_COLUMNS, scores)]
        lists.setdefault(utterance, []).append(Hypothesis(tuple(words), values[0], values[1], tuple(bounds)))
        last = utterance
    if not lists:
        raise FormatError(f"{path}: no hypotheses; expected lines {LINE}")
    return lists


def write_nbest(path: str | Path, lists: Mapping[str, Sequence[Hypothesis]]) -> None:
    """Write n-best lists; scores are restored exactly when read.

    Parameters
    ----------
    path : path
        File to write.
    lists : mapping of str to sequence of Hypothesis

    Raises
    ------
    FormatError
        For a name with a blank, or that begins with #.
    """
    with atomic_write(path, "w") as file:
        for utterance, hypotheses in lists.items():
            if utterance.split() != [utterance] or utterance.startswith("#"):
                raise FormatError(
                    f"{path}: utterance {utterance!r}; expected a name without blanks and no # at its beginning"
                )
            for hypothesis in hypotheses:
                first, *later_sentences = hypothesis.sentences
                words = (*first, *(word for sentence in later_sentences for word in (SENT_START, *sentence)))
                columns = (
                    utterance,
                    repr(float(hypothesis.acoustic)),
                    repr(float(hypothesis.lm)),
                    str(len(hypothesis.words)),
                    *words,
                )
                file.write(" ".join(columns) + "\n")


def _score(text: str, where: str, name: str) -> float:
    try:
        value = to_number(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FormatError(f"{where}: {name} score {text!r}; expected a finite number, a natural log")
    return value


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    lists = read_nbest(path)
    sizes = [len(entry) for entry in lists.values()]
    return [("utterances", len(lists)), ("hypotheses", f"{sum(sizes)}, {extent(sizes)} each")]


def consensus_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    rows = list(map(consensus_slots, rows_of(path)))
    slots = [slot for row in rows for slot in row or ()]
    contested = sum(len(slot) > 1 for slot in slots)
    return [("utterances", len(rows)), ("slots", f"{len(slots)}, {contested} of them with several words")]


def consensus_slots(row: list[str]) -> list[list[str]] | None:
    """Return the words of each slot of a line `utterance [ word probability ... ] ...`; None for other lines."""
    slots: list[list[str]] = []
    at = 1
    while at < len(row):
        if row[at] != "[" or "]" not in row[at:]:
            return None
        slot = row[at + 1 : row.index("]", at)]
        if not slot or len(slot) % 2 or not all(is_number(p) and 0 <= float(p) <= 1 for p in slot[1::2]):
            return None
        slots.append(slot[::2])
        at += len(slot) + 2
    return slots
