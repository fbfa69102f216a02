"""Writes aligned recordings as TextGrids, CTM, JSON, CSV and MLF."""

import csv
import json
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path

from decoder.recognizer.jobs.alignment.results import (
    AlignedRecording,
    AlignedUtterance,
    Damage,
    DoubtfulStretch,
    doubtful_stretches,
)
from readers.common.files import atomic_write, write_lines
from readers.htk.mlf import Label, write_mlf
from readers.htk.units import TICKS_PER_SECOND
from readers.results.timed_words import Word, ctm_lines, write_tiers

SEPARATE = {"textgrid": "TextGrid", "json": "json"}  # formats with a file for each recording, and its extension
CTM, CSV, MLF = ("words.ctm", "phones.ctm"), "alignment.csv", "alignment.mlf"  # of all recordings
TOGETHER = {"ctm": CTM, "csv": (CSV,), "mlf": (MLF,)}
DOUBTFUL, DAMAGE = "doubtful.csv", "damage.csv"
COLUMNS = ("recording", "speaker", "utterance", "type", "start", "end", "label", "confidence")


def result_files(recordings: Sequence[str], formats: Iterable[str], out: Path) -> dict[str, tuple[Path, ...]]:
    """Return the files of each format, given the names of the recordings."""
    return {
        form: tuple(
            [out / name for name in TOGETHER[form]]
            if form in TOGETHER
            else [files_of(name, [form], out)[form] for name in recordings]
        )
        for form in formats
    }


def files_of(recording: str, formats: Iterable[str], out: Path) -> dict[str, Path]:
    """Return the files of a recording by format."""
    return {form: out / f"{recording}.{SEPARATE[form]}" for form in formats if form in SEPARATE}


def write_recording(
    result: AlignedRecording, formats: Iterable[str], out: Path, threshold: float, doubtful_tier: bool = False
) -> None:
    """Write the files of one recording; threshold: confidence below which words are doubtful."""
    for form, path in files_of(result.name, formats, out).items():
        doubtful = doubtful_stretches(result, threshold)
        if form == "textgrid":
            write_tiers(path, tiers_of(result, doubtful if doubtful_tier else None), result.seconds)
        else:
            with atomic_write(path, "w") as file:
                json.dump(as_json(result, doubtful), file, ensure_ascii=False, indent=1)
                file.write("\n")


def write_together(
    results: Sequence[AlignedRecording], formats: Iterable[str], out: Path, threshold: float
) -> list[DoubtfulStretch]:
    """Write the files of all recordings, and return the doubtful stretches."""
    doubtful = [stretch for result in results for stretch in doubtful_stretches(result, threshold)]
    write_table(out / DOUBTFUL, DoubtfulStretch._fields, ((*one[:-1], _confidence(one.confidence)) for one in doubtful))
    damage = [
        (result.name, one.speaker, one.name, *stretch)
        for result in results
        for one in result.utterances
        for stretch in one.damage
    ]
    if damage:
        write_table(out / DAMAGE, (*COLUMNS[:3], *Damage._fields), damage)
    else:
        (out / DAMAGE).unlink(missing_ok=True)
    if "ctm" in formats:
        for name, level in zip(CTM, ("words", "phones")):
            write_lines(out / name, (line for result in results for line in _ctm(result, level)))
    if "csv" in formats:
        write_table(out / CSV, COLUMNS, (row for result in results for row in _rows(result)))
    if "mlf" in formats:
        aligned = (one for result in results for one in result.utterances if not one.reason)
        write_mlf(out / MLF, ((f"*/{one.name}.lab", _mlf_labels(one)) for one in aligned))
    return doubtful


def tiers_of(result: AlignedRecording, doubtful: Sequence[DoubtfulStretch] | None = None) -> dict[str, list[Word]]:
    """Return the tiers of a TextGrid: `words` and `phones`, of each speaker if there are several.

    Words of a speaker that overlap are in tiers of their own, `SPEAKER (2) - words`.

    doubtful: stretches for a third tier, which also has those of damage.  An utterance that could not be aligned is an
    empty interval.
    """
    voices = _voices(result.utterances)
    tiers: dict[str, list[Word]] = {}
    for voice, own in voices.items():
        prefix = f"{voice} - " if len(voices) > 1 else ""
        for level in ("words", "phones"):
            labels = [label for one in own for label in _labels(one, level)]
            tiers[prefix + level] = sorted(labels, key=lambda label: label.start)
        if doubtful is not None:
            names = {one.name for one in own}
            stretches = [
                Word(f"{one.words} ({one.confidence:.2f})", one.start, one.end)
                for one in doubtful
                if one.utterance in names
            ]
            stretches += [_damage_label(stretch) for one in own for stretch in one.damage]
            tiers[prefix + "doubtful"] = sorted(stretches, key=lambda one: one.start)
    return tiers


def _voices(utterances: Iterable[AlignedUtterance]) -> dict[str, list[AlignedUtterance]]:
    """Return the utterances of each speaker, of which no words overlap; `SPEAKER (2)` has those that would."""
    voices: dict[str, list[AlignedUtterance]] = {one.speaker: [] for one in utterances}
    speakers, ends = set(voices), dict.fromkeys(voices, 0.0)
    aligned = [(_extent(one), one) for one in utterances if not one.reason]
    for (start, end), one in sorted(aligned, key=lambda pair: pair[0]):
        others = (f"{one.speaker} ({number})" for number in count(2))
        names = chain([one.speaker], (name for name in others if name not in speakers))
        voice = next(name for name in names if ends.get(name, 0.0) <= start)
        voices.setdefault(voice, []).append(one)
        ends[voice] = end
    for speaker in speakers:
        extents = [_extent(one) for one in voices[speaker]]
        for one in utterances:
            if one.reason and one.speaker == speaker:
                place = bisect(extents, (one.start, one.start))
                start = max(one.start, extents[place - 1][1]) if place else one.start
                end = min(one.end, extents[place][0]) if place < len(extents) else one.end
                if start < end:
                    voices[speaker].append(one._replace(start=start, end=end))
    return voices


def _extent(utterance: AlignedUtterance) -> tuple[float, float]:
    """Return where the first word or phone begins and where the last one ends."""
    labels = (*utterance.words, *utterance.phones)
    return min((one.start for one in labels), default=utterance.start), max(
        (one.end for one in labels), default=utterance.start
    )


def _damage_label(damage: Damage) -> Word:
    difference = " -> ".join(filter(None, (damage.words, damage.recognised)))
    return Word(f"{damage.kind}: {difference}", damage.start, damage.end)


def _labels(utterance: AlignedUtterance, level: str) -> tuple[Word, ...]:
    if utterance.reason:
        return (Word("", utterance.start, utterance.end),)
    return getattr(utterance, level)


def as_json(result: AlignedRecording, doubtful: Sequence[DoubtfulStretch]) -> dict[str, object]:
    """Return a recording as an object of JSON."""
    utterances = []
    for one in result.utterances:
        content = one._asdict() | {
            "words": [_object("word", word) for word in one.words],
            "phones": [_object("phone", phone) for phone in one.phones],
            "damage": [stretch._asdict() for stretch in one.damage],
        }
        content |= {} if one.damage else {"damage": None}
        utterances.append({name: value for name, value in content.items() if value not in ("", None)})
    stretches = [one._asdict() | {"confidence": _confidence(one.confidence)} for one in doubtful]
    for stretch in stretches:
        del stretch["recording"]
    return {"audio": result.audio, "seconds": result.seconds, "utterances": utterances, "doubtful": stretches}


def _object(kind: str, label: Word) -> dict[str, object]:
    return {kind: label.text, "start": label.start, "end": label.end, "confidence": _confidence(label.confidence)}


def _confidence(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _ctm(result: AlignedRecording, level: str) -> Iterator[str]:
    """Return the lines of a recording, by time; channels are counted from 1."""
    lines = [
        (label.start, line)
        for one in result.utterances
        for label in getattr(one, level)
        for line in ctm_lines(result.name, [label], str((one.channel or 0) + 1))
    ]
    return (line for _, line in sorted(lines, key=lambda pair: pair[0]))


def _rows(result: AlignedRecording) -> Iterator[tuple[object, ...]]:
    for one in result.utterances:
        for kind, labels in (("word", one.words), ("phone", one.phones)):
            for label in labels:
                place = label.start, label.end, label.text, _confidence(label.confidence)
                yield (result.name, one.speaker, one.name, kind, *place)


def _mlf_labels(utterance: AlignedUtterance) -> list[Label]:
    """Return the phones of an utterance, in time since its beginning, with words beside their first phones."""
    words = {word.start: word.text for word in utterance.words}
    labels = []
    for phone in utterance.phones:
        start, end = (round((time - utterance.start) * TICKS_PER_SECOND) for time in (phone.start, phone.end))
        labels.append(
            Label(start, end, phone.text, None, ((words[phone.start], None),) if phone.start in words else ())
        )
    return labels


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file."""
    with atomic_write(path, "w") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        table.writerows(rows)
