"""The forms in which a transcript of a file is returned."""

import json
import math
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from decoder.recognizer.transcript import Transcript, Word
from readers.errors import ConfigError
from readers.htk.mlf import Label, write_mlf
from readers.htk.slf import write_slf
from readers.htk.units import TICKS_PER_SECOND
from readers.results.timed_words import TimedWord, cues, write_ctm, write_srt, write_textgrid, write_vtt

JSON, TEXT = "application/json", "text/plain; charset=utf-8"


def json_content(transcript: Transcript) -> dict[str, Any]:
    """Return the content of response_format=json."""
    return {"text": transcript.text, "usage": _usage(transcript)}


def verbose_content(
    transcript: Transcript, language: str, granularities: Sequence[str] = (), alternatives: int = 0
) -> dict[str, Any]:
    """Return the content of response_format=verbose_json.

    Words have a `confidence`, and an unfinished search has a `reason`, which OpenAI's interface does not know.

    Parameters
    ----------
    transcript : Transcript
    language : str
    granularities : sequence of str
        "word", "segment"; none stands for both.
    alternatives : int
        Number of alternatives.
    """
    found: dict[str, Any] = {
        "task": "transcribe",
        "language": language,
        "duration": round(transcript.seconds, 3),
        "text": transcript.text,
    }
    if not granularities or "word" in granularities:
        found["words"] = [_word(word) for word in transcript.words]
    if not granularities or "segment" in granularities:
        found["segments"] = segments(transcript.words)
    if alternatives:
        found["alternatives"] = [
            {"text": one.text, "words": [_word(word) for word in one.words]}
            for one in transcript.hypotheses(alternatives)
        ]
    if transcript.reason:
        found["reason"] = transcript.reason
    return found | {"usage": _usage(transcript)}


def segments(words: Sequence[Word]) -> list[dict[str, Any]]:
    """Return the segments, which are those of subtitles.

    Of Whisper's figures, avg_logprob is the mean logarithm of the confidences and compression_ratio is computed as
    there; the others do not exist here and are constant.
    """
    found, place = [], 0
    for start, end, text in cues(word.timed for word in words):
        inside = words[place : place + len(text.split())]
        place += len(inside)
        known = [math.log(max(word.confidence, 1e-10)) for word in inside if word.confidence is not None]
        data = text.encode()
        found.append(
            {
                "id": len(found),
                "seek": 0,
                "start": round(start, 3),
                "end": round(end, 3),
                "text": text,
                "tokens": [],
                "temperature": 0.0,
                "avg_logprob": round(sum(known) / len(known), 4) if known else 0.0,
                "compression_ratio": round(len(data) / len(zlib.compress(data)), 3),
                "no_speech_prob": 0.0,
            }
        )
    return found


def _word(word: Word) -> dict[str, Any]:
    found: dict[str, Any] = {"word": word.text, "start": round(word.start, 3), "end": round(word.end, 3)}
    return found if word.confidence is None else found | {"confidence": round(word.confidence, 4)}


def _usage(transcript: Transcript) -> dict[str, Any]:
    return {"type": "duration", "seconds": math.ceil(transcript.seconds)}


def written(write: Callable[..., None], content: Any, **how: Any) -> str:
    """Return what a function writes to a file: write(path, content, **how)."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "transcript"
        write(path, content, **how)
        return path.read_text(encoding="utf-8")


def timed_words(transcript: Transcript) -> list[TimedWord]:
    """Return the words as the writers of subtitles and tables take them."""
    return [word.timed for word in transcript.words]


def mlf(transcript: Transcript, name: str) -> str:
    """Return the words as a master label file of HTK."""
    labels = [
        Label(round(word.start * TICKS_PER_SECOND), round(word.end * TICKS_PER_SECOND), word.text)
        for word in transcript.words
    ]
    return written(write_mlf, [(f"*/{name}.rec", labels)])


def slf(transcript: Transcript, name: str) -> str:
    """Return the lattice in HTK's form.  Raises ConfigError if there is none."""
    if transcript.lattice is None:
        raise ConfigError(f"{name}: no lattice ({transcript.reason or 'long audio'}); expected one for slf")
    return written(write_slf, transcript.lattice)


FORMATS: dict[str, tuple[str, Callable[..., str]]] = {
    "json": (JSON, lambda transcript, **how: json.dumps(json_content(transcript), ensure_ascii=False)),
    "verbose_json": (
        JSON,
        lambda transcript, name, **how: json.dumps(verbose_content(transcript, **how), ensure_ascii=False),
    ),
    "text": (TEXT, lambda transcript, **how: transcript.text + "\n"),
    "srt": (TEXT, lambda transcript, **how: written(write_srt, timed_words(transcript))),
    "vtt": ("text/vtt; charset=utf-8", lambda transcript, **how: written(write_vtt, timed_words(transcript))),
    "ctm": (TEXT, lambda transcript, name, **how: written(write_ctm, {name: timed_words(transcript)})),
    "textgrid": (
        TEXT,
        lambda transcript, **how: written(write_textgrid, timed_words(transcript), duration=transcript.seconds),
    ),
    "mlf": (TEXT, lambda transcript, name, **how: mlf(transcript, name)),
    "slf": (TEXT, lambda transcript, name, **how: slf(transcript, name)),
}
