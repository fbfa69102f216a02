"""Writes aligned recordings as TextGrids, CTM, JSON, CSV and MLF."""

import csv
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
from readers.common.files import atomic_write, write_json, write_lines
from readers.htk.mlf import Label, write_mlf
from readers.htk.units import TICKS_PER_SECOND
from readers.results.timed_words import Word, ctm_lines, write_tiers

SEPARATE = {"textgrid": "TextGrid", "json": "json"}  # formats with a file for each recording, and its extension
CTM, CSV, MLF = ("words.ctm", "phones.ctm"), "alignment.csv", "alignment.mlf"  # of all recordings
TOGETHER = {"ctm": CTM, "csv": (CSV,), "mlf": (MLF,)}
DOUBTFUL, DAMAGE, VARIANTS = "doubtful.csv", "damage.csv", "variants.csv"
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
            write_json(path, as_json(result, doubtful), ensure_ascii=False, indent=1)


def write_together(
    results: Sequence[AlignedRecording], formats: Iterable[str], out: Path, threshold: float
) -> list[DoubtfulStretch]:
    """Write the files of all recordings, and return the doubtful stretches."""
    doubtful = [stretch for result in results for stretch in doubtful_stretches(result, threshold)]
    write_table(
        out / DOUBTFUL,
        DoubtfulStretch._fields,
        ((*stretch[:-1], _confidence(stretch.confidence)) for stretch in doubtful),
    )
    damage = [
        (result.name, utterance.speaker, utterance.name, *stretch)
        for result in results
        for utterance in result.utterances
        for stretch in utterance.damage
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
        aligned = (utterance for result in results for utterance in result.utterances if not utterance.reason)
        write_mlf(out / MLF, ((f"*/{utterance.name}.lab", _mlf_labels(utterance)) for utterance in aligned))
    return doubtful


def write_variants(variants: Sequence[tuple[str, tuple[str, ...], int]], out: Path) -> None:
    """Write how often each pronunciation of words with several was chosen, if there are such words."""
    if variants:
        rows = ((word, " ".join(phones), count) for word, phones, count in variants)
        write_table(out / VARIANTS, ("word", "pronunciation", "count"), rows)
    else:
        (out / VARIANTS).unlink(missing_ok=True)


def tiers_of(result: AlignedRecording, doubtful: Sequence[DoubtfulStretch] | None = None) -> dict[str, list[Word]]:
    """Return the tiers of a TextGrid: `words` and `phones`, of each speaker if there are several.

    Words of a speaker that overlap are in tiers of their own, `SPEAKER (2) - words`.

    doubtful: stretches for a third tier, which also has those of damage.  An utterance that could not be aligned is an
    empty interval.
    """
    voices = _voices(result.utterances)
    tiers: dict[str, list[Word]] = {}
    for voice, members in voices.items():
        prefix = f"{voice} - " if len(voices) > 1 else ""
        for level in ("words", "phones"):
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


def _labels(utterance: AlignedUtterance, level: str) -> tuple[Word, ...]:
    if utterance.reason:
        return (Word("", utterance.start, utterance.end),)
    return getattr(utterance, level)


def as_json(result: AlignedRecording, doubtful: Sequence[DoubtfulStretch]) -> dict[str, object]:
    """Return a recording as an object of JSON."""
    utterances = []
    for utterance in result.utterances:
        content = utterance._asdict() | {
            "words": [_object("word", word) for word in utterance.words],
            "phones": [_object("phone", phone) for phone in utterance.phones],
            "damage": [stretch._asdict() for stretch in utterance.damage],
        }
        content |= {} if utterance.damage else {"damage": None}
        utterances.append({name: value for name, value in content.items() if value not in ("", None)})
    stretches = [stretch._asdict() | {"confidence": _confidence(stretch.confidence)} for stretch in doubtful]
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
        for utterance in result.utterances
        for label in getattr(utterance, level)
        for line in ctm_lines(result.name, [label], str((utterance.channel or 0) + 1))
    ]
    return (line for _, line in sorted(lines, key=lambda pair: pair[0]))


def _rows(result: AlignedRecording) -> Iterator[tuple[object, ...]]:
    for utterance in result.utterances:
        for kind, labels in (("word", utterance.words), ("phone", utterance.phones)):
            for label in labels:
                fields = label.start, label.end, label.text, _confidence(label.confidence)
                yield (result.name, utterance.speaker, utterance.name, kind, *fields)


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
