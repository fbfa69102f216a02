"""Exact alignment of all that was said, in windows that end at pauses, and the list of what is damaged."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from decoder.alignment.aligner import Aligner
from decoder.alignment.goodness import PhoneGoodness
from decoder.alignment.long_recordings.results import (
    DELETED,
    INSERTED,
    REPLACED,
    DamagedStretch,
    LongAlignment,
    SpokenPhone,
    SpokenWord,
)
from decoder.alignment.long_recordings.second_pass import SecondPass
from decoder.alignment.long_recordings.sources import ScoreSource
from decoder.alignment.long_recordings.transcript_errors import Item
from decoder.search.batch import in_order
from readers.errors import ShapeError
from readers.htk.trees import phone_of

PAUSE, SHORTEST, LONGEST = 20, 300, 2000  # frames: a pause at which a window may end, its least and largest length


def align_windows(
    source: ScoreSource,
    aligner: Aligner,
    second_pass: SecondPass,
    transcript: Sequence[str],
    items: list[Item],
    threads: int | None,
) -> LongAlignment:
    """Align the words that were said with their frames; what is doubtful is recognised again."""
    phones: list[SpokenPhone] = []
    goodness = PhoneGoodness(aligner.graphs)

    def align(window: tuple[int, int, list[Item]]) -> tuple[list[SpokenWord], list[SpokenPhone]]:
        first, last, items = window
        if not items:
            return [], []
        scores = source.scores(first, last)
        words, phones = _align(aligner, goodness, first, scores, items)
        revised = second_pass.revised(first, scores, words)
        return (words, phones) if revised is None else _align(aligner, goodness, first, scores, revised)

    said: list[SpokenWord] = []  # all words, those outside of the transcript included
    for _, outcome in in_order(align, _windows(items, source.num_frames), threads):
        if isinstance(outcome, Exception):
            raise outcome
        said += outcome[0]
        phones += outcome[1]
    words = [word for word in said if word.position >= 0]
    damage = _damage(transcript, said, source.num_frames)
    return LongAlignment(tuple(words), tuple(damage), tuple(phones), source.num_frames, source.period)


def _windows(items: list[Item], num_frames: int) -> list[tuple[int, int, list[Item]]]:
    """(first frame, last frame, words) of each window."""
    windows = []
    begin = first = 0
    for i, (item, following) in enumerate(itertools.pairwise(items), start=1):
        length = item.end - first
        if (following.start - item.end >= PAUSE and length >= SHORTEST) or length >= LONGEST:
            last = (item.end + following.start) // 2
            windows.append((first, last, items[begin:i]))
            begin = i
            first = last
    return [*windows, (first, num_frames, items[begin:])]


def _align(
    aligner: Aligner, goodness: PhoneGoodness, first: int, scores: np.ndarray, items: list[Item]
) -> tuple[list[SpokenWord], list[SpokenPhone]]:
    """The words and phones of a window of frames from `first` on."""
    try:
        alignment = aligner.align([item.word for item in items], scores)
    except ShapeError:  # no alignment in these frames: the times of the search stay
        return [SpokenWord(item.position, item.word, item.start, item.end, 0.0) for item in items], []
    phones: list[SpokenPhone] = []
    of_word: list[list[float]] = [[] for _ in items]
    for (unit, span), good in zip(alignment.phones, goodness.of(alignment, scores).tolist()):
        position = items[unit.word].position if unit.word >= 0 else -1
        phones.append(SpokenPhone(phone_of(unit.model), first + span.start, first + span.end, position, math.exp(good)))
        if unit.word >= 0:
            of_word[unit.word].append(good)
    words = [
        SpokenWord(item.position, item.word, first + span.start, first + span.end, math.exp(sum(good) / len(good)))
        for item, (_, span), good in zip(items, alignment.words, of_word)
    ]
    return words, phones


def _damage(transcript: Sequence[str], said: list[SpokenWord], num_frames: int) -> list[DamagedStretch]:
    """The stretches between words of the transcript that were said."""
    transcript_words = [-1, *(i for i, word in enumerate(said) if word.position >= 0), len(said)]
    stretches = []
    for i, j in itertools.pairwise(transcript_words):
        first = said[i].position + 1 if i >= 0 else 0
        last = said[j].position if j < len(said) else len(transcript)
        inserted = said[i + 1 : j]
        if first == last and not inserted:
            continue
        kind = DELETED if not inserted else INSERTED if first == last else REPLACED
        start = inserted[0].start if inserted else said[i].end if i >= 0 else 0
        end = inserted[-1].end if inserted else said[j].start if j < len(said) else num_frames
        recognised = tuple(word.text for word in inserted)
        stretches.append(DamagedStretch(kind, first, last, tuple(transcript[first:last]), start, end, recognised))
    return stretches
