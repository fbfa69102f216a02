"""Writes aligned recordings as TextGrids, ELAN files, CTM, JSON, CSV and MLF."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from decoder.results.alignment import (
    COLUMNS,
    LEVELS,
    Alignment,
    Damage,
    ctm_of,
    mlf_entries,
    rounded,
    tiers_of,
    with_alignment,
    write_rows,
)
from decoder.results.doubtful import DoubtfulStretch, doubtful_stretches
from readers.common.files import atomic_write, write_json, write_lines
from readers.htk.mlf import write_mlf
from readers.results.elan import ElanDocument, read_elan
from readers.results.tier_files import EAF
from readers.results.timed_words import Word, write_tiers

SEPARATE = {
    "textgrid": "TextGrid",
    "eaf": "eaf",
    "json": "json",
}  # formats with a file for each recording, and its extension
CTM, CSV, MLF = ("words.ctm", "phones.ctm"), "alignment.csv", "alignment.mlf"  # of all recordings
TOGETHER = {"ctm": CTM, "csv": (CSV,), "mlf": (MLF,)}
DOUBTFUL, DAMAGE, VARIANTS = "doubtful.csv", "damage.csv", "variants.csv"


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
    result: Alignment, formats: Iterable[str], out: Path, threshold: float, doubtful_tier: bool = False
) -> None:
    """Write the files of one recording; threshold: confidence below which words are doubtful."""
    for form, path in files_of(result.name, formats, out).items():
        doubtful = doubtful_stretches(result, threshold)
        if form == "textgrid":
            write_tiers(path, tiers_of(result, doubtful if doubtful_tier else None), result.seconds)
        elif form == "eaf":
            transcript = transcript_of(result.audio)
            document = read_elan(transcript) if transcript else ElanDocument.empty(path, Path(result.audio))
            with_alignment(document, result, doubtful if doubtful_tier else None).write(path)
        else:
            write_json(path, as_json(result, doubtful), ensure_ascii=False, indent=1)


def transcript_of(audio: str | Path) -> Path | None:
    """Return the ELAN file beside a recording, to which the tiers of an alignment are added; None without one."""
    path = Path(audio).with_suffix(EAF)
    return path if path.is_file() else None


def write_together(
    results: Sequence[Alignment], formats: Iterable[str], out: Path, threshold: float
) -> list[DoubtfulStretch]:
    """Write the files of all recordings, and return the doubtful stretches."""
    doubtful = [stretch for result in results for stretch in doubtful_stretches(result, threshold)]
    write_table(
        out / DOUBTFUL,
        DoubtfulStretch._fields,
        ((*stretch[:-1], rounded(stretch.confidence)) for stretch in doubtful),
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
        for name, level in zip(CTM, LEVELS):
            write_lines(out / name, (line for result in results for line in ctm_of(result, level)))
    if "csv" in formats:
        write_rows(out / CSV, (row for result in results for row in result.rows()))
    if "mlf" in formats:
        write_mlf(out / MLF, (entry for result in results for entry in mlf_entries(result)))
    return doubtful


def write_variants(variants: Sequence[tuple[str, tuple[str, ...], int]], out: Path) -> None:
    """Write how often each pronunciation of words with several was chosen, if there are such words."""
    if variants:
        rows = ((word, " ".join(phones), count) for word, phones, count in variants)
        write_table(out / VARIANTS, ("word", "pronunciation", "count"), rows)
    else:
        (out / VARIANTS).unlink(missing_ok=True)


def as_json(result: Alignment, doubtful: Sequence[DoubtfulStretch]) -> dict[str, object]:
    """Return a recording as an object of JSON."""
    utterances = []
    for utterance in result.utterances:
        content = utterance._asdict() | {
            "words": [_object("word", word) for word in utterance.words],
            "phones": [_object("phone", phone) for phone in utterance.phones],
            "damage": [stretch._asdict() for stretch in utterance.damage],
        }
        content |= {"states": None} if utterance.damage else {"states": None, "damage": None}
        utterances.append({name: value for name, value in content.items() if value not in ("", None)})
    stretches = [stretch._asdict() | {"confidence": rounded(stretch.confidence)} for stretch in doubtful]
    for stretch in stretches:
        del stretch["recording"]
    return {"audio": result.audio, "seconds": result.seconds, "utterances": utterances, "doubtful": stretches}


def _object(kind: str, label: Word) -> dict[str, object]:
    return {kind: label.text, "start": label.start, "end": label.end, "confidence": rounded(label.confidence)}


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file."""
    with atomic_write(path, "w") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        table.writerows(rows)
