"""Reads the labels with times of alignments: MLF, CTM, TextGrids, and the records of FA-Bench.

A TextGrid, a folder of TextGrids and FA-Bench's records have tiers with names, `phones` and `words`; an MLF has levels.
FA-Bench's files are JSON lines: `hyp.jsonl` of an aligner has objects with `utt_id` and the lists `phones` and `words`,
`ref.jsonl` has objects with `utt_id`, `level` (phone or word) and the list `intervals`; an item of a list has `label`,
`start` and `end` in seconds.  Source: github.com/olewave/fa-bench, `fabench/schema.py` and `export_refs.py`, 2026.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from readers.common.faults import listed
from readers.common.text import parse_object, read_lines
from readers.errors import FormatError
from readers.htk.mlf import Label, read_mlf
from readers.htk.storage.label_fields import HEADER, is_mlf
from readers.htk.units import TICKS_PER_SECOND
from readers.results.textgrid import read_textgrid
from readers.results.timed_words import MOST_SECONDS, is_ctm, read_ctm

TEXTGRID = ".textgrid"
PHONES, WORDS, LABELS = "phones", "words", "labels"
# What other programs call tiers, in lower case: FA-Bench, the Bournemouth aligner, WebMAUS, Praat's users.
NAMES = {
    **dict.fromkeys(("phone", "phoneme", "phonemes", "segments", "mau"), PHONES),
    **dict.fromkeys(("word", "ort-mau"), WORDS),
}
LEVELS = {1: (LABELS,), 2: (PHONES, WORDS), 3: ("states", PHONES, WORDS)}  # by number, as `argonaut plot` calls them
SNAP = 1e-3  # seconds; a pause this short between two labels comes from rounded times

Utterances = Mapping[str, list[Label]]
_Times = Iterable[tuple[str, float, float]]  # name, start and end in seconds


def read_tiers(path: str | Path, beside: Iterable[str | Path] = ()) -> Mapping[str, Utterances]:
    """Read the labels of an alignment.

    Parameters
    ----------
    path : path
        An MLF, a CTM file, a TextGrid, a folder of TextGrids (also in its folders), or FA-Bench's JSON lines; the
        content tells them apart.
    beside : iterable of path
        Files with which it is compared; the channels of CTM files are those that any of them has.

    Returns
    -------
    mapping of str to mapping of str to list of Label
        Tier -> utterance -> labels in 100 ns ticks.  An MLF and a CTM file have one tier, `labels`; the others those
        that are there, as they are called there in lower case, or `phones` and `words`.  An utterance is named as its
        TextGrid, in folders with their names; of several speakers in it, `NAME-SPEAKER`.

    Raises
    ------
    FormatError, OSError
        For files in none of these forms, and for malformed ones.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() == TEXTGRID and file.is_file())
        if not files:
            raise FormatError(f"{path}: no TextGrids; expected a folder with at least one")
        return _textgrids({file.relative_to(path).with_suffix("").as_posix(): file for file in files})
    if path.suffix.lower() == TEXTGRID:
        return _textgrids({path.stem: path})
    if is_mlf(path):
        return {LABELS: read_mlf(path)}
    lines = read_lines(path)
    if next((line for line in lines if line.strip()), "").lstrip().startswith("{"):
        return _records(lines, path)
    if is_ctm(lines):
        ctm_files = [file for file in beside if not Path(file).is_dir() and not is_mlf(file)]
        utterances = read_ctm(path, [file for file in ctm_files if is_ctm(read_lines(file))])
        return {LABELS: {name: _labels(entry, path) for name, entry in _words(utterances)}}
    if lines[:1] == [HEADER]:
        return {LABELS: read_mlf(path)}
    first = lines[0].strip()[:40] if lines else ""
    raise FormatError(
        f"{path}:1: first line {first!r}; expected an alignment: an MLF, CTM, TextGrid or FA-Bench's JSON lines"
    )


def level_of(utterances: Utterances, tier: str, where: object) -> int:
    """Return the level of an MLF that has a tier, by the number of levels of its first utterances."""
    first = [labels for _, labels in zip(range(10), utterances.values())]
    depth = 1 + max((len(label.aux) for labels in first for label in labels), default=0)
    names = LEVELS.get(depth, ())
    if names == (LABELS,):
        return 0
    if tier not in names:
        raise FormatError(f"{where}: {depth} levels and no tier {tier!r}; expected {' '.join(names) or 'a level'}")
    return names.index(tier)


def _words(utterances: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, _Times]]:
    for name, words in utterances.items():
        yield name, ((word.text, word.start, word.end) for word in words)


def _textgrids(files: Mapping[str, Path]) -> dict[str, dict[str, list[Label]]]:
    """Return the tiers of intervals of TextGrids, given by the names of their utterances."""
    tiers: dict[str, dict[str, list[Label]]] = {}
    for utterance, path in files.items():
        named = [
            (speaker, kind.lower(), tier.intervals)
            for tier in read_textgrid(path)
            if not tier.has_points
            for speaker, _, kind in (tier.name.rpartition(" - "),)
        ]
        num_speakers = len({speaker for speaker, _, _ in named})
        for speaker, kind, intervals in named:
            name = utterance if num_speakers == 1 else f"{utterance}-{speaker}"
            times = ((interval.text.strip(), interval.start, interval.end) for interval in intervals)
            tiers.setdefault(NAMES.get(kind, kind), {}).setdefault(name, []).extend(_labels(times, path))
    if not tiers:
        raise FormatError(f"{listed(list(map(str, files.values())), 1)}: no tier of intervals; expected at least one")
    return tiers


def _records(lines: Iterable[str], path: Path) -> dict[str, dict[str, list[Label]]]:
    """Return the tiers of FA-Bench's records."""
    tiers: dict[str, dict[str, list[Label]]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        record = parse_object(line, where)
        name = record.get("utt_id")
        by_tier = {key: record[key] for key in (PHONES, WORDS) if record.get(key)}
        if "intervals" in record:
            level = str(record.get("level", LABELS)).lower()
            by_tier[NAMES.get(level, level)] = record["intervals"]
        if not isinstance(name, str) or not (by_tier or {PHONES, WORDS} & record.keys()):
            raise FormatError(f"{where}: expected an object with utt_id, and phones, words or intervals")
        for tier, items in by_tier.items():
            utterances = tiers.setdefault(tier, {})
            if name in utterances:
                raise FormatError(
                    f"{where}: the {tier} of utterance {name!r} are repeated; expected one condition and one mode in "
                    "a file"
                )
            utterances[name] = _labels(_items(items, where), where)
    return tiers


def _items(items: Any, where: str) -> Iterator[tuple[str, float, float]]:
    if not isinstance(items, list):
        raise FormatError(f"{where}: {str(items)[:40]!r}; expected a list of intervals")
    for item in items:
        values = [item.get(key) for key in ("label", "start", "end")] if isinstance(item, dict) else []
        match values:
            case [str(label), float() | int() as start, float() | int() as end]:
                yield label.strip(), start, end
            case _:
                raise FormatError(f"{where}: interval {str(item)[:60]}; expected label, start and end in seconds")


def _labels(times: _Times, where: object) -> list[Label]:
    """Return labels, by time and without empty ones; where two nearly touch, the first lasts until the second."""
    labels: list[Label] = []
    for name, start, end in sorted((interval for interval in times if interval[0]), key=lambda interval: interval[1]):
        if not 0 <= start <= end < MOST_SECONDS:  # false for nan, too
            raise FormatError(
                f"{where}: label {name[:40]!r} from {str(start)[:20]} to {str(end)[:20]} s; expected 0 <= start <= end"
            )
        begin = round(start * TICKS_PER_SECOND)
        if labels and labels[-1].end is not None and abs(begin - labels[-1].end) <= SNAP * TICKS_PER_SECOND:
            labels[-1] = labels[-1]._replace(end=begin)
        labels.append(Label(begin, round(end * TICKS_PER_SECOND), name))
    return labels
