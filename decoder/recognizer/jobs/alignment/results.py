"""The files that keep the results of recordings for the next run."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from decoder.alignment.annotated import words_to_pronounce
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
from decoder.recognizer.forced_aligner import ForcedAligner
from decoder.recognizer.jobs.alignment.recordings import Recording
from decoder.results.alignment import AlignedUtterance, Alignment, Damage
from readers.common.files import write_json
from readers.results.timed_words import Word

KEPT = ".results"  # folder of the output directory
NO_TRANSCRIPT = "no transcript"  # the reason why an utterance was skipped
DECIMALS = 9  # of seconds, as in TextGrids


def has_failed(recording: Alignment) -> bool:
    """Return whether an utterance could not be aligned; one without a transcript was only skipped."""
    return any(utterance.reason not in ("", NO_TRANSCRIPT) for utterance in recording.utterances)


def file_marks(path: Path) -> list[tuple[str, int, int]]:
    """Return name, size and time of a file, or of the files of a directory."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.is_file()]


class KeptResults:
    """The results of finished recordings, in files of the output directory, with a digest of what they depend on.

    Parameters
    ----------
    out : Path
        Output directory.
    common : sequence of object
        What all results depend on, such as the model and options.
    aligner : ForcedAligner
        Has the pronunciations of the words.
    """

    def __init__(self, out: Path, common: Sequence[object], aligner: ForcedAligner):
        self.directory = out / KEPT
        self.common = common
        self.aligner = aligner

    def digest(self, recording: Recording) -> str:
        """Return the digest of what the results of a recording depend on."""
        about = recording.audio.stat()
        words = sorted({word for utterance in recording.utterances for word in utterance.words or ()})
        parts = [
            self.common,
            [str(recording.audio), about.st_size, about.st_mtime_ns],
            [
                [utterance.name, utterance.speaker, utterance.words, utterance.start, utterance.end, utterance.channel]
                for utterance in recording.utterances
            ],
            _pronunciations(self.aligner, words),
        ]
        return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()

    def read(self, recording: Recording) -> tuple[Alignment, dict[str, object]] | None:
        """Return the results of a recording and the options of its files by format; None if there are none, or if
        anything has changed.
        """
        try:
            content = json.loads(self._path(recording.name).read_text(encoding="utf-8"))
            if content["inputs"] != self.digest(recording):
                return None
            return _parse(content["recording"]), dict(content["shown"])
        except (OSError, ValueError, LookupError, TypeError, AttributeError):  # none yet, or damaged
            return None

    def write(self, recording: Recording, result: Alignment, shown: Mapping[str, object]) -> None:
        """Keep the results of a recording; shown: the options of its files by format."""
        content = {"inputs": self.digest(recording), "shown": shown, "recording": _fields(result)}
        write_json(self._path(recording.name), content, ensure_ascii=False)

    def _path(self, name: str) -> Path:
        return self.directory / f"{name}.json"


def _fields(result: Alignment) -> dict[str, Any]:
    return result._asdict() | {"utterances": [utterance._asdict() for utterance in result.utterances]}


def _parse(content: dict[str, Any]) -> Alignment:
    utterances = tuple(
        AlignedUtterance(
            **fields
            | {
                "words": _timed(fields["words"]),
                "phones": _timed(fields["phones"]),
                "states": _timed(fields["states"]),
                "damage": tuple(Damage(*stretch) for stretch in fields["damage"]),
            }
        )
        for fields in content["utterances"]
    )
    return Alignment(**content | {"seconds": float(content["seconds"]), "utterances": utterances})


def _timed(rows: Iterable[Sequence[Any]]) -> tuple[Word, ...]:
    return tuple(
        Word(str(word), float(start), float(end), None if confidence is None else float(confidence))
        for word, start, end, confidence in rows
    )


def _pronunciations(aligner: ForcedAligner, words: Sequence[str]) -> list[tuple[str, Sequence[object]]]:
    """Return what alignments of some words depend on.

    Each word as it is looked up, the whole one for one that is cut off, with its pronunciations, none if it is not in
    the dictionary; then the costs of silence beside each pronunciation, if the dictionary has them.
    """
    known = aligner.graphs.words or {}
    silences = aligner.graphs.silences
    variants = [(word, known.get(word, ())) for word in words_to_pronounce(aligner.labels(words))]
    marks = [(mark, ()) for mark in (SENTENCE_START, SENTENCE_END)]
    keys = marks + [(word, phones) for word, choices in variants for phones, _, _ in choices]
    return variants + [(key[0], silences[key]) for key in keys if key in silences]
