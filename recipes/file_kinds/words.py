"""Figures of files of words with times, scores or counts: CTM, STM, subtitles, n-best, consensus, confusions."""

import re
from collections import Counter

from readers.common.text import is_count, is_number, read_lines
from readers.results.nbest import read_nbest
from readers.results.textgrid import read_textgrid
from readers.results.timed_words import is_ctm, read_ctm
from recipes.file_kinds.figures import Figures, Kind

CUE = re.compile(r"(?:\d+:)?\d+:\d\d[.,]\d{3} --> (?:(\d{1,9}):)?(\d{1,9}):(\d\d)[.,](\d{3})")
TEXTGRID = "TextGrid of Praat"
STM_COMMENT = ";;"


def text_kind(lines: list[str]) -> Kind | None:
    """Return (kind, function for its figures) given the non-empty lines of a text file; None for other text.

    A file with nothing but numbers is none of these kinds: each of them contains words.
    """
    if lines[:1] == ["WEBVTT"] or (len(lines) > 1 and CUE.match(lines[1])):
        return "subtitles", subtitles
    if lines and re.match(r'(?:File type = )?"ooTextFile', lines[0]):
        return TEXTGRID, textgrid
    rows = [line.split() for line in lines]
    if _are_confusions(lines):
        return "confusions of a score", confusions
    if _are_hypotheses([row for row in rows if not row[0].startswith("#")]):
        return "n-best lists", nbest
    if any("[" in row for row in rows) and all(_slots(row) is not None for row in rows):
        words = [word for row in rows for slot in _slots(row) or () for word in slot]
        if any(not is_number(word) for word in words):
            return "consensus networks", consensus
    timed = [row for row in rows if not row[0].startswith(STM_COMMENT)]
    if _is_ctm(timed):
        return "words with times (CTM)", ctm
    return ("reference with times (STM)", stm) if _is_stm(timed) else None


def _are_confusions(lines: list[str]) -> bool:
    rows = [line.split("\t") for line in lines]
    if not rows or not all(len(row) == 3 and is_count(row[0]) and row[1] != row[2] for row in rows):
        return False
    counts = [int(row[0]) for row in rows]
    return counts == sorted(counts, reverse=True) and any(not is_number(word) for row in rows for word in row[1:])


def _are_hypotheses(rows: list[list[str]]) -> bool:
    counted = all(len(row) > 3 and is_count(row[3]) and int(row[3]) == len(row) - 4 for row in rows)
    scored = counted and all(is_number(score) for row in rows for score in row[1:3])
    return scored and any(not is_number(word) for row in rows for word in row[4:])


def _slots(row: list[str]) -> list[list[str]] | None:
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


def _is_ctm(rows: list[list[str]]) -> bool:
    scored = all(is_number(row[5]) for row in rows if len(row) == 6)
    return is_ctm(map(" ".join, rows)) and scored and any(not is_number(row[4]) for row in rows)


def _is_stm(rows: list[list[str]]) -> bool:
    timed = all(len(row) > 4 and is_number(row[3]) and is_number(row[4]) for row in rows)
    if not rows or not timed or not all(0 <= float(row[3]) <= float(row[4]) for row in rows):
        return False
    return any(not is_number(word) for row in rows for word in row[5:])


def ctm(path: str) -> Figures:
    utterances = read_ctm(path)
    words = [word for entry in utterances.values() for word in entry]
    known = [word.confidence for word in words if word.confidence is not None]
    return [
        ("utterances", len(utterances)),
        ("words", f"{len(words)}, {len({word.text for word in words})} different"),
        ("ends at", f"{max(word.end for word in words):.2f} s"),
        ("confidence", f"given for {len(known)}" + (f", mean {sum(known) / len(known):.3f}" if known else "")),
    ]


def stm(path: str) -> Figures:
    rows = [line.split() for line in read_lines(path) if line.strip()]
    rows = [row for row in rows if not row[0].startswith(STM_COMMENT)]
    texts = [row[6:] if row[5:] and row[5].startswith("<") else row[5:] for row in rows]  # <labels> is not a word
    return [
        ("segments", f"{len(rows)} of {len({row[0] for row in rows})} recordings"),
        ("speakers", len({row[2] for row in rows})),
        ("words", sum(map(len, texts))),
        ("ends at", f"{max(float(row[4]) for row in rows):.2f} s"),
    ]


def nbest(path: str) -> Figures:
    lists = read_nbest(path)
    sizes = [len(entry) for entry in lists.values()]
    return [("utterances", len(lists)), ("hypotheses", f"{sum(sizes)}, {min(sizes)} to {max(sizes)} each")]


def consensus(path: str) -> Figures:
    rows = [_slots(line.split()) for line in read_lines(path) if line.strip()]
    slots = [slot for row in rows for slot in row or ()]
    contested = sum(len(slot) > 1 for slot in slots)
    return [("utterances", len(rows)), ("slots", f"{len(slots)}, {contested} of them with several words")]


def confusions(path: str) -> Figures:
    from decoder.scoring.report import NONE

    rows = [line.strip().split("\t") for line in read_lines(path) if line.strip()]
    kinds: Counter[str] = Counter()
    for count, word, guess in rows:
        kinds["insertions" if word == NONE else "deletions" if guess == NONE else "substitutions"] += int(count)
    figures: Figures = [("pairs", len(rows))]
    return figures + [(kind, kinds[kind]) for kind in ("substitutions", "deletions", "insertions")]


def subtitles(path: str) -> Figures:
    cues = [match for line in read_lines(path) if (match := CUE.match(line.strip()))]
    ends = [
        int(hours or 0) * 3600 + int(minutes) * 60 + int(whole) + int(thousandths) / 1000
        for hours, minutes, whole, thousandths in (cue.groups() for cue in cues)
    ]
    return [("cues", len(cues)), ("ends at", f"{max(ends, default=0.0):.2f} s")]


def textgrid_in_utf16(path: str) -> Kind:
    """Return the kind of a file in UTF-16, in which Praat writes TextGrids.  Raises FormatError for any other."""
    read_textgrid(path)
    return TEXTGRID, textgrid


def textgrid(path: str) -> Figures:
    tiers = read_textgrid(path)
    ends = [interval.end for tier in tiers for interval in tier.intervals]
    return [
        ("tiers", " ".join(tier.name for tier in tiers if tier.name) or "none named"),
        ("intervals", sum(len(tier.intervals) for tier in tiers if not tier.has_points)),
        ("ends at", f"{max(ends, default=0.0):.2f} s"),
    ]
