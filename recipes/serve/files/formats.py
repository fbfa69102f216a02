"""The forms in which a transcript of a file is returned."""

import json
import math
import zlib
from collections.abc import Sequence
from typing import Any

from decoder.grammars.slots import judgement_object, slot_objects
from decoder.recognizer.jobs.transcript_files import FORMATS as EXTENSIONS
from decoder.recognizer.transcript import Transcript
from readers.common.temporary import scratch_directory
from readers.results.timed_words import Word, cues, label_objects, sentence_object

JSON, TEXT = "application/json", "text/plain; charset=utf-8"


def json_content(transcript: Transcript) -> dict[str, Any]:
    """Return the content of response_format=json: the text and, with a grammar, whether it is `accepted`."""
    judgement = judgement_object(transcript.accepted, transcript.grammar_score)
    return {"text": transcript.text, **judgement, "usage": _usage(transcript)}


def verbose_content(
    transcript: Transcript, language: str, granularities: Sequence[str] = (), alternatives: int = 0
) -> dict[str, Any]:
    """Return the content of response_format=verbose_json.

    Words have a `confidence`, `phones` are listed like them, a grammar has `accepted`, `grammar_score` and
    `slots`, an unfinished search has a `reason`, and an irregular file has `notes`, which OpenAI's interface does not
    know.

    Parameters
    ----------
    transcript : Transcript
    language : str
    granularities : sequence of str
        "word", "segment", "phone"; none stands for the first two.
    alternatives : int
        Number of alternatives.
    """
    content: dict[str, Any] = {
        "task": "transcribe",
        "language": language,
        "duration": round(transcript.seconds, 3),
        "text": transcript.text,
    }
    if not granularities or "word" in granularities:
        content["words"] = label_objects("word", transcript.words)
    if not granularities or "segment" in granularities:
        content["segments"] = segments(transcript.words)
    if transcript.phones:
        content["phones"] = label_objects("phone", transcript.phones)
    if alternatives:
        content["alternatives"] = [sentence_object(sentence.words) for sentence in transcript.hypotheses(alternatives)]
    content |= judgement_object(transcript.accepted, transcript.grammar_score)
    if transcript.parse_slots is not None:
        content["slots"] = slot_objects(transcript.slots)
    if transcript.reason:
        content["reason"] = transcript.reason
    if transcript.notes:
        content["notes"] = list(transcript.notes)
    return content | {"usage": _usage(transcript)}


def segments(words: Sequence[Word]) -> list[dict[str, Any]]:
    """Return the segments, which are those of subtitles.

    Of Whisper's figures, avg_logprob is the mean logarithm of the confidences and compression_ratio is computed as
    there; the others do not exist here and are constant.
    """
    objects: list[dict[str, Any]] = []
    position = 0
    for start, end, text in cues(words):
        segment = words[position : position + len(text.split())]
        position += len(segment)
        log_confidences = [math.log(max(word.confidence, 1e-10)) for word in segment if word.confidence is not None]
        data = text.encode()
        objects.append(
            {
                "id": len(objects),
                "seek": 0,
                "start": round(start, 3),
                "end": round(end, 3),
                "text": text,
                "tokens": [],
                "temperature": 0.0,
                "avg_logprob": round(sum(log_confidences) / len(log_confidences), 4) if log_confidences else 0.0,
                "compression_ratio": round(len(data) / len(zlib.compress(data)), 3),
                "no_speech_prob": 0.0,
            }
        )
    return objects


def _usage(transcript: Transcript) -> dict[str, Any]:
    return {"type": "duration", "seconds": math.ceil(transcript.seconds)}


def written(form: str, transcript: Transcript, name: str) -> str:
    """Return what `argonaut transcribe --format FORM` writes for a recording of this name."""
    if form == "text":
        return f"{transcript.text}\n"
    with scratch_directory() as directory:
        path = directory / f"transcript.{EXTENSIONS[form]}"
        transcript.save(path, name)
        return path.read_text(encoding="utf-8")


MEDIA_TYPES = {"json": JSON, "verbose_json": JSON, "vtt": "text/vtt; charset=utf-8"}
FORMATS = ("json", "verbose_json", "text", "srt", "vtt", "ctm", "textgrid", "mlf", "slf")


def media_type(form: str) -> str:
    """Return the type of content of a form."""
    return MEDIA_TYPES.get(form, TEXT)


def response_text(
    form: str, transcript: Transcript, name: str, language: str, granularities: Sequence[str], alternatives: int
) -> str:
    """Return a transcript in one of FORMATS.

    Raises ConfigError for a lattice that does not exist.
    """
    if form == "json":
        return json.dumps(json_content(transcript), ensure_ascii=False)
    if form == "verbose_json":
        content = verbose_content(transcript, language, granularities, alternatives)
        return json.dumps(content, ensure_ascii=False)
    return written(form, transcript, name)
