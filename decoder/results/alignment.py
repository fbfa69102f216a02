"""Aligned recordings: words, phones and states with their times, in Python and in the forms of other programs.

Praat's TextGrids and ELAN's files have tiers of levels, `words`, `phones` and `states`, of each speaker if there are
several.  CTM and Audacity's labels have one level.  Of an MLF, the labels are those of the lowest level, with the
others beside the first label that belongs to them.
"""

import csv
import re
from bisect import bisect, bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count, pairwise
from pathlib import Path
from typing import Literal, NamedTuple, Self

from decoder.results.doubtful import DoubtfulStretch
from readers.common.files import atomic_write, write_lines
from readers.common.names import names_for_any_path
from readers.common.text import canonical
from readers.dictionaries.phone_classes import is_pause
from readers.errors import ConfigError, FormatError
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.htk.units import TICKS_PER_SECOND
from readers.results.audacity import read_labels, write_labels
from readers.results.elan.document import ElanDocument
from readers.results.tier_files import EAF, TEXTGRID, read_tiers
from readers.results.tiers import Interval, Tier
from readers.results.timed_words import MOST_SECONDS, Word, ctm_lines, read_ctm, write_tiers

Level = Literal["words", "phones", "states"]
LEVELS: tuple[Level, ...] = ("words", "phones", "states")
COLUMNS = ("recording", "speaker", "utterance", "type", "start", "end", "label", "confidence", "word", "number")
_REPLACED = re.compile(r"\W")
READ_BACK = (".TextGrid", EAF, ".ctm", ".mlf", ".txt")


class Damage(NamedTuple):
    """A stretch where transcript and recording differ: `words` of the transcript, and what was recognised there."""

    start: float
    end: float
    kind: str
    words: str
    recognised: str


class AlignedUtterance(NamedTuple):
    """An utterance with its words, phones and states.

    Attributes
    ----------
    name, speaker : str
    channel : int or None
        Counted from 0; None of a recording with one.
    start, end : float
        Seconds of the recording, as all times.
    words, phones, states : tuple of Word
        With confidences; a state has that of its phone.  Inserted silence is left out, and so are the states of long
        utterances.
    reason : str
        Why there are none; "" if there are.
    damage : tuple of Damage
        Of a long utterance: where its transcript differs from the recording, with what was recognised instead.
    """

    name: str
    speaker: str
    channel: int | None
    start: float
    end: float
    words: tuple[Word, ...]
    phones: tuple[Word, ...]
    reason: str = ""
    damage: tuple[Damage, ...] = ()
    states: tuple[Word, ...] = ()

    def labels(self, level: Level) -> tuple[Word, ...]:
        """Return the words, the phones or the states.  Raises ConfigError for another level."""
        check_levels([level], "alignment")
        return {"words": self.words, "phones": self.phones, "states": self.states}[level]


class Alignment(NamedTuple):
    """The alignment of a recording.

    Attributes
    ----------
    name : str
    audio : str
        The recording; "" if it is not known.
    seconds : float
        Its duration.
    utterances : tuple of AlignedUtterance

    Examples
    --------
    ``pandas.DataFrame(Alignment.read("one.TextGrid").rows())``
    """

    name: str
    audio: str
    seconds: float
    utterances: tuple[AlignedUtterance, ...]

    def labels(self, level: Level) -> list[Word]:
        """Return the words, the phones or the states of all utterances, by time.  Raises ConfigError for others."""
        check_levels([level], self.name)
        labels = (label for utterance in self.utterances for label in utterance.labels(level))
        return sorted(labels, key=lambda label: label.start)

    def rows(self, levels: Iterable[Level] = ("words", "phones")) -> list[dict[str, object]]:
        """Return a row for each label.

        Parameters
        ----------
        levels : iterable of {"words", "phones", "states"}

        Returns
        -------
        list of dict
            With recording, speaker, utterance, type ("word", "phone" or "state"), start and end in seconds, label,
            confidence (None if it is not known), and the word to which the label belongs with its number in the
            utterance, from 1 ("" and None if it is in none); a pandas DataFrame can be made of it.

        Raises
        ------
        ConfigError
            For other levels.
        """
        levels = check_levels(levels, self.name)
        return [
            dict(zip(COLUMNS, (self.name, utterance.speaker, utterance.name, level[:-1], *fields), strict=True))
            for utterance in self.utterances
            for level in levels
            for fields in _fields(utterance, level)
        ]

    def save(self, path: str | Path, levels: Sequence[Level] = ("words", "phones")) -> None:
        """Write the alignment to a file, in the form that its suffix selects.

        Parameters
        ----------
        path : path
            `.TextGrid` (Praat), `.eaf` (ELAN), `.mlf` (HTK), `.csv`; `.ctm` (NIST) and `.txt` (Audacity's labels) have
            the first level only.  CTM and CSV have confidences.
        levels : sequence of {"words", "phones", "states"}

        Raises
        ------
        ConfigError
            For another suffix, other levels, times that are not 0 <= start <= end and, in an MLF, for a label that
            contains no label of the level below.
        OSError
        """
        path, form = Path(path), Path(path).suffix.lower()
        self._check(levels, path)
        if form == TEXTGRID:
            write_tiers(path, tiers_of(self, levels=levels), self.seconds)
        elif form == EAF:
            audio = Path(self.audio) if self.audio else None
            with_alignment(ElanDocument.empty(path, audio), self, levels=levels).write(path)
        elif form == ".ctm":
            write_lines(path, ctm_of(self, levels[0]))
        elif form == ".mlf":
            write_mlf(path, mlf_entries(self, levels))
        elif form == ".csv":
            write_rows(path, self.rows(levels))
        elif form == ".txt":
            write_labels(path, self.labels(levels[0]))
        else:
            raise ConfigError(f"{path}: unknown form; expected a name that ends in {', '.join((*READ_BACK, '.csv'))}")

    def _check(self, levels: Sequence[Level], path: Path) -> None:
        """Raise ConfigError for levels and times that no form can have."""
        check_levels(levels, path)
        for text, start, end, _ in (label for level in levels for label in self.labels(level)):
            if not 0 <= start <= end < MOST_SECONDS:  # false for nan, too
                raise ConfigError(f"{path}: label {text[:40]!r} from {start} to {end} s; expected 0 <= start <= end")

    @classmethod
    def read(cls, path: str | Path, level: Level = "words") -> Self:
        """Read the alignment of one recording.

        Parameters
        ----------
        path, level
            As for `read_alignments`.

        Raises
        ------
        FormatError
            As `read_alignments`, and for a file with several recordings.
        ConfigError, OSError
        """
        alignments = read_alignments(path, level)
        if len(alignments) != 1:
            raise FormatError(f"{path}: {len(alignments)} recordings; expected one, or read_alignments")
        return cls(*alignments[0])


def check_levels(levels: Iterable[Level], where: object) -> list[Level]:
    """Return levels of labels.  Raises ConfigError for none, for unknown ones, and for a string instead of a list."""
    given = list(levels)
    if not given or not set(given) <= set(LEVELS):
        name = levels if isinstance(levels, str) else ", ".join(map(str, given)) or "none"
        raise ConfigError(f"{where}: levels {name}; expected some of {', '.join(LEVELS)}")
    return given


def read_alignments(path: str | Path, level: Level = "words") -> tuple[Alignment, ...]:
    """Read the alignments of a file, in the form that its suffix tells.

    Parameters
    ----------
    path : path
        `.TextGrid` or `.eaf`: a recording, with tiers `words`, `phones` and `states`, or `SPEAKER - words`; `.ctm` or
        `.mlf`: any number of recordings; `.txt`: Audacity's labels of one.
    level : {"words", "phones", "states"}
        Of the labels of a CTM file, of Audacity, and of an MLF with one level.

    Returns
    -------
    tuple of Alignment
        A recording ends with its last label, or as its TextGrid does; an utterance of each speaker lasts from its
        beginning to its end.

    Raises
    ------
    FormatError
        With file and line, for malformed files, and labels without times.
    ConfigError
        For another suffix, and another level.
    OSError
    """
    path, form = Path(path), Path(path).suffix.lower()
    check_levels([level], path)
    if form in (TEXTGRID, EAF):
        return (_from_tiers(path.stem, read_tiers(path), path),)
    if form == ".ctm":
        recordings = {name: {level: words} for name, words in read_ctm(path).items()}
    elif form == ".mlf":
        mlf = read_mlf(path)
        names = names_for_any_path(list(mlf))
        recordings = {names[key]: _from_labels(labels, level, f"{path}: {key}") for key, labels in mlf.items()}
    elif form == ".txt":
        recordings = {path.stem: {level: read_labels(path)}}
    else:
        raise ConfigError(f"{path}: unknown form; expected a name that ends in {', '.join(READ_BACK)}")
    return tuple(_alignment(name, {"": levels}) for name, levels in recordings.items())


def _alignment(name: str, speakers: dict[str, dict[Level, list[Word]]], seconds: float = 0.0) -> Alignment:
    """Return an alignment, given the labels of each speaker's levels."""
    ends = (label.end for levels in speakers.values() for labels in levels.values() for label in labels)
    seconds = max([seconds, *ends])
    utterances = []
    for speaker, levels in speakers.items():
        words, phones, states = (tuple(levels.get(level, ())) for level in LEVELS)
        whole = f"{name}-{speaker}" if len(speakers) > 1 else name
        utterances.append(AlignedUtterance(whole, speaker, None, 0.0, seconds, words, phones, states=states))
    return Alignment(name, "", seconds, tuple(utterances))


def _from_tiers(name: str, tiers: Iterable[Tier], path: Path) -> Alignment:
    speakers: dict[str, dict[Level, list[Word]]] = {}
    seconds = 0.0
    for tier in tiers:
        speaker, _, kind = tier.name.rpartition(" - ")
        seconds = max([seconds, *(interval.end for interval in tier.intervals)])
        for level in LEVELS:
            if kind.lower() == level and not tier.has_points:
                labels = [Word(interval.text, interval.start, interval.end) for interval in tier.intervals]
                spoken = [label for label in labels if label.text.strip()]
                speakers.setdefault(speaker or tier.speaker, {}).setdefault(level, []).extend(spoken)
    if not speakers:
        raise FormatError(f"{path}: no tier of an alignment; expected one of {', '.join(LEVELS)}")
    return _alignment(name, speakers, seconds)


def _from_labels(labels: Sequence[Label], level: Level, where: str) -> dict[Level, list[Word]]:
    """Return the words of each level of an MLF's entry, from the labels up: states, phones and words."""
    num_levels = 1 + max((len(label.aux) for label in labels), default=0)
    if num_levels > len(LEVELS):
        raise FormatError(f"{where}: {num_levels} levels; expected at most {', '.join(LEVELS)}")
    names: list[Level] = [level] if num_levels == 1 else list(LEVELS[:num_levels][::-1])
    columns: dict[Level, list[Word]] = {name: [] for name in names}
    for label in labels:
        if label.start is None or label.end is None:
            raise FormatError(f"{where}: label {label.name[:40]!r} has no start and end; expected both")
        start, end = label.start / TICKS_PER_SECOND, label.end / TICKS_PER_SECOND
        texts = [label.name, *(name for name, _ in label.aux)]
        for position, name in enumerate(names):
            if position < len(texts):
                columns[name].append(Word(texts[position], start, end))
            elif columns[name] and not is_pause(label.name):  # the label of a higher level goes on
                columns[name][-1] = columns[name][-1]._replace(end=end)
    return columns


def tiers_of(
    alignment: Alignment,
    doubtful: Sequence[DoubtfulStretch] | None = None,
    levels: Sequence[Level] = ("words", "phones"),
) -> dict[str, list[Word]]:
    """Return the tiers of a TextGrid: `words` and `phones`, of each speaker if there are several.

    Words of a speaker that overlap are in tiers of their own, `SPEAKER (2) - words`.

    doubtful: stretches for a third tier, which also has those of damage.  An utterance that could not be aligned is an
    empty interval.
    """
    voices = _voices(alignment.utterances)
    tiers: dict[str, list[Word]] = {}
    for voice, members in voices.items():
        prefix = f"{voice} - " if len(voices) > 1 else ""
        for level in levels:
            labels = [label for utterance in members for label in _labels(utterance, level)]
            tiers[prefix + level] = sorted(labels, key=lambda label: label.start)
        if doubtful is not None:
            names = {utterance.name for utterance in members}
            stretches = [
                Word(f"{stretch.words} ({stretch.confidence:.2f})", stretch.start, stretch.end)
                for stretch in doubtful
                if stretch.utterance in names
            ]
            stretches += [_damage_label(stretch) for utterance in members for stretch in utterance.damage]
            tiers[prefix + "doubtful"] = sorted(stretches, key=lambda stretch: stretch.start)
    return tiers


def with_alignment(
    document: ElanDocument,
    alignment: Alignment,
    doubtful: Sequence[DoubtfulStretch] | None = None,
    levels: Sequence[Level] = ("words", "phones"),
) -> ElanDocument:
    """Return an ELAN document with the tiers of an alignment.

    A tier depends on that of the level above it or, of words, on the speaker's tier of utterances, if each of its
    labels is within one of the annotations there.  A name that the document has gets a number: `words (2)`.
    """
    added: list[Tier] = []
    used = {tier.name for tier in document.tiers}
    speakers = {utterance.speaker for utterance in alignment.utterances}
    above: dict[str, Tier] = {}  # the last tier of each voice
    for full_name, labels in tiers_of(alignment, doubtful, levels).items():
        voice, _, kind = full_name.rpartition(" - ")
        speaker = voice if voice in speakers or len(speakers) > 1 else next(iter(speakers), "")
        transcripts = [tier for tier in document.tiers if not tier.parent and _is_of(tier, speaker)]
        candidates = [above[voice]] if voice in above and kind in levels else transcripts
        intervals = tuple(Interval(label.start, label.end, label.text) for label in labels if label.text)
        parent = next((tier.name for tier in candidates if _includes(tier.intervals, intervals)), "")
        numbered = (f"{full_name} ({number})" for number in count(2))
        name = next(name for name in chain([full_name], numbered) if name not in used)
        used.add(name)
        participant = next((tier.speaker for tier in transcripts if tier.speaker), speaker)
        added.append(Tier(name, False, intervals, parent, participant, kind))
        if kind in levels:
            above[voice] = added[-1]
    return document.with_tiers(added)


def _is_of(tier: Tier, speaker: str) -> bool:
    """Whether a tier is that of a speaker, in whose name `import` has replaced some characters."""
    names = (_REPLACED.sub("_", canonical(name).strip()) for name in (tier.speaker, tier.name))
    return bool(speaker) and _REPLACED.sub("_", speaker) in names


def _includes(intervals: Sequence[Interval], parts: Sequence[Interval]) -> bool:
    """Whether each part is within one of the intervals, in milliseconds."""
    starts = [round(1000 * interval.start) for interval in intervals]
    for part in parts:
        position = bisect(starts, round(1000 * part.start)) - 1
        if position < 0 or round(1000 * intervals[position].end) < round(1000 * part.end):
            return False
    return bool(intervals)


def _voices(utterances: Iterable[AlignedUtterance]) -> dict[str, list[AlignedUtterance]]:
    """Return the utterances of each speaker, of which no words overlap; `SPEAKER (2)` has those that would."""
    voices: dict[str, list[AlignedUtterance]] = {utterance.speaker: [] for utterance in utterances}
    speakers = set(voices)
    ends = dict.fromkeys(voices, 0.0)
    aligned = [(_extent(utterance), utterance) for utterance in utterances if not utterance.reason]
    for (start, end), utterance in sorted(aligned, key=lambda pair: pair[0]):
        numbered = (f"{utterance.speaker} ({number})" for number in count(2))
        names = chain([utterance.speaker], (name for name in numbered if name not in speakers))
        voice = next(name for name in names if ends.get(name, 0.0) <= start)
        voices.setdefault(voice, []).append(utterance)
        ends[voice] = end
    for speaker in speakers:
        extents = [_extent(member) for member in voices[speaker]]
        for utterance in utterances:
            if utterance.reason and utterance.speaker == speaker:
                position = bisect(extents, (utterance.start, utterance.start))
                start = max(utterance.start, extents[position - 1][1]) if position else utterance.start
                end = min(utterance.end, extents[position][0]) if position < len(extents) else utterance.end
                if start < end:
                    voices[speaker].append(utterance._replace(start=start, end=end))
    return voices


def _extent(utterance: AlignedUtterance) -> tuple[float, float]:
    """Return where the first word or phone begins and where the last one ends."""
    labels = (*utterance.words, *utterance.phones)
    return min((label.start for label in labels), default=utterance.start), max(
        (label.end for label in labels), default=utterance.start
    )


def _damage_label(damage: Damage) -> Word:
    difference = " -> ".join(filter(None, (damage.words, damage.recognised)))
    return Word(f"{damage.kind}: {difference}", damage.start, damage.end)


def _labels(utterance: AlignedUtterance, level: Level) -> tuple[Word, ...]:
    if utterance.reason:
        return (Word("", utterance.start, utterance.end),)
    return utterance.labels(level)


def ctm_of(alignment: Alignment, level: Level) -> Iterator[str]:
    """Return the lines of a recording in a CTM file, by time; channels are counted from 1."""
    lines = [
        (label.start, line)
        for utterance in alignment.utterances
        for label in utterance.labels(level)
        for line in ctm_lines(alignment.name, [label], str((utterance.channel or 0) + 1))
    ]
    return (line for _, line in sorted(lines, key=lambda pair: pair[0]))


def mlf_entries(
    alignment: Alignment, levels: Sequence[Level] = ("words", "phones")
) -> Iterator[tuple[str, list[Label]]]:
    """Yield the entries of the utterances in an MLF: labels of the lowest level, in time since their beginning.

    Levels without labels are left out.  A label is beside the first one of the level below whose middle it contains, so
    that boundaries which were moved by hand need not be the same in all levels.
    """
    ordered = [
        level for level in LEVELS if level in levels and any(member.labels(level) for member in alignment.utterances)
    ]
    for utterance in alignment.utterances:
        if utterance.reason or not ordered:
            continue
        lowest = utterance.labels(ordered[-1])
        above: list[tuple[tuple[str, None], ...]] = [()] * len(lowest)
        positions = list(range(len(lowest)))  # in the lowest level, of the first part of each label
        for level_below, level in pairwise(ordered[::-1]):
            middles = [(part.start + part.end) / 2 for part in utterance.labels(level_below)]
            firsts = [bisect_left(middles, label.start) for label in utterance.labels(level)]
            for label, first in zip(utterance.labels(level), firsts):
                if first == len(middles) or middles[first] > label.end:
                    raise ConfigError(
                        f"{utterance.name}: no {level_below} within {label.text[:40]!r} of the {level}, from "
                        f"{label.start} to {label.end} s; expected at least one"
                    )
            positions = [positions[first] for first in firsts]
            for label, position in zip(utterance.labels(level), positions):
                above[position] += ((label.text, None),)
        labels = []
        for label, beside in zip(lowest, above):
            start, end = (round((time - utterance.start) * TICKS_PER_SECOND) for time in (label.start, label.end))
            labels.append(Label(start, end, label.text, None, beside))
        yield f"*/{utterance.name}.lab", labels


def write_rows(path: str | Path, rows: Iterable[dict[str, object]]) -> None:
    """Write rows of `Alignment.rows` as a CSV file; confidences have four digits."""
    with atomic_write(path, "w") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        for row in rows:
            confidence = row["confidence"]
            table.writerow(row | {"confidence": rounded(confidence if isinstance(confidence, float) else None)})


def rounded(confidence: float | None) -> float | None:
    """Return a confidence with four digits."""
    return None if confidence is None else float(f"{confidence:.4g}")


def _fields(
    utterance: AlignedUtterance, level: Level
) -> Iterator[tuple[float, float, str, float | None, str, int | None]]:
    """Yield of each label what the columns from `start` on have; it belongs to the word that contains its middle."""
    words = sorted(utterance.words, key=lambda word: word.start)
    starts = [word.start for word in words]
    for label in utterance.labels(level):
        middle = (label.start + label.end) / 2
        number = bisect(starts, middle)
        is_within = number > 0 and middle <= words[number - 1].end
        word = (words[number - 1].text, number) if is_within else ("", None)
        yield label.start, label.end, label.text, label.confidence, *word
