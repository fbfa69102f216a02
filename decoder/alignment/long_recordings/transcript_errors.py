"""Which of the differences between the transcript and the recognised words are damage.

Between two words that match, the transcript's words are compared with those recognised, by their best alignment with
the frames from the first of the two words to the last.  A short word that matches must fit the audio better than no
word in its place.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from decoder.alignment.aligner import Aligner, StateAlignment
from decoder.alignment.long_recordings.options import LongOptions
from decoder.alignment.long_recordings.sources import ScoreSource
from decoder.search.batch import in_order
from decoder.search.path import WordTimes
from readers.errors import ShapeError

LONGEST = 6000  # frames of a comparison
SHORT = 5  # frames per phone; a shorter word may have been recognised only because it was expected


T = TypeVar("T")
Answer = TypeVar("Answer")


class Item(NamedTuple):
    """A word as it was said: its index in the transcript, or -1; its name, and approximate times in frames."""

    position: int
    word: str
    start: int
    end: int


class _Difference(NamedTuple):
    """Words first to last - 1 of the transcript stand where the words begin to end - 1 were recognised."""

    first: int
    last: int
    begin: int
    end: int


def judge(
    source: ScoreSource,
    aligner: Aligner,
    transcript: Sequence[str],
    heard: Sequence[WordTimes],
    found: np.ndarray,
    options: LongOptions,
    threads: int | None,
) -> list[Item]:
    """Return all that was said, in order; words of the transcript that are missing were not."""
    items = [Item(-1, word.text, word.start, word.end) for word in heard]
    matched = np.flatnonzero(found >= 0)
    for position in matched.tolist():
        items[found[position]] = items[found[position]]._replace(position=position)
    pairs = [(-1, -1), *zip(matched.tolist(), found[matched].tolist()), (len(transcript), len(heard))]
    differences = [_Difference(i + 1, k, h + 1, j) for (i, h), (k, j) in itertools.pairwise(pairs)]

    def better(difference: _Difference) -> list[Item]:
        return _better(source, aligner, transcript, items, difference, options.margin)

    result: list[Item] = []
    for difference, chosen in _all(better, differences, threads):
        result += chosen + items[difference.end : difference.end + 1]
    doubtful = [i for i, item in enumerate(result) if item.position >= 0 and _is_short(aligner, item)]
    refuted = {i for i, said in _all(lambda i: _was_said(source, aligner, result, i), doubtful, threads) if not said}
    return [item for i, item in enumerate(result) if i not in refuted]


def _all(function: Callable[[T], Answer], items: Iterable[T], threads: int | None) -> Iterator[tuple[T, Answer]]:
    """(item, result) of each; raises the first error."""
    for item, outcome in in_order(function, items, threads):
        if isinstance(outcome, Exception):
            raise outcome
        yield item, outcome


def _is_short(aligner: Aligner, item: Item) -> bool:
    assert aligner.graphs.words is not None
    phones = min(len(phones) for phones, _, _ in aligner.graphs.words[item.word])
    return item.end - item.start < SHORT * phones


def _was_said(source: ScoreSource, aligner: Aligner, items: list[Item], i: int) -> bool:
    """Whether the frames from the word before item i to the word after it fit better with it than without it."""
    before = items[max(i - 1, 0) : i]
    after = items[i + 1 : i + 2]
    first = before[0].start if before else 0
    last = after[0].end if after else source.num_frames
    if last - first > LONGEST or not (before or after):
        return True
    scores = source.scores(first, last)
    beside = [[item.word for item in some] for some in (before, after)]
    try:
        return aligner.align([*beside[0], items[i].word, *beside[1]], scores).total < (
            aligner.align([*beside[0], *beside[1]], scores).total
        )
    except ShapeError:
        return False


def _better(
    source: ScoreSource,
    aligner: Aligner,
    transcript: Sequence[str],
    items: list[Item],
    difference: _Difference,
    margin: float,
) -> list[Item]:
    """Return the items of a difference: the transcript's words unless those recognised are much better."""
    spoken = items[difference.begin : difference.end]
    words = transcript[difference.first : difference.last]
    before = items[max(difference.begin - 1, 0) : difference.begin]
    after = items[difference.end : difference.end + 1]
    if not (words or spoken) or not (words or before or after):
        return spoken
    first = before[0].start if before else 0
    last = after[0].end if after else source.num_frames
    if last - first > LONGEST:
        return spoken
    scores = source.scores(first, last)

    def align(middle: Sequence[str]) -> StateAlignment:
        labels = [*(item.word for item in before), *middle, *(item.word for item in after)]
        return aligner.align(labels, scores)

    try:
        alignment = align(words)
    except ShapeError:  # too few frames for these words
        return spoken
    if before or spoken or after:
        try:
            allowed = margin * max(len(words), len(spoken))
            if alignment.total - align([item.word for item in spoken]).total > allowed:
                return spoken
        except ShapeError:
            pass
    return [
        Item(difference.first + i, word, first + span.start, first + span.end)
        for i, (word, (_, span)) in enumerate(zip(words, alignment.words[len(before) : len(before) + len(words)]))
    ]
