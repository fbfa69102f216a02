"""Alignments over HTTP: POST /v1/align with a form of a file and the text that was said.

The answer is what `argonaut align` writes for a recording, as JSON or as a TextGrid.
"""

import json
from collections import Counter
from pathlib import Path

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from decoder.recognizer.forced_aligner import ForcedAligner
from decoder.recognizer.jobs.alignment.aligning import RecordingAligner
from decoder.recognizer.jobs.alignment.options import THRESHOLD
from decoder.recognizer.jobs.alignment.output import as_json
from decoder.recognizer.jobs.alignment.recordings import Recording
from decoder.results.alignment import Alignment
from decoder.results.doubtful import doubtful_stretches
from readers.audio.duration import audio_seconds
from readers.common.temporary import scratch_directory
from readers.corpora.corpus import Utterance
from recipes.serve.files.formats import JSON, TEXT
from recipes.serve.files.requests import Check, RequestError, answer_with, process_file, text_field
from recipes.serve.service import Service, Usage

NAME = "recording"
FORMATS = ("json", "textgrid")


async def align(service: Service, request: Request) -> Response:
    """Answer one request."""
    needed = "dictionary with tables of models"
    return await answer_with(service, request, service.aligner, needed, "no_alignment", _align_form)


async def _align_form(
    aligner: ForcedAligner, service: Service, usage: Usage, form: FormData, receive: Receive
) -> Response:
    kind = text_field(form, "response_format") or "json"
    if kind not in FORMATS:
        raise RequestError(f"response_format {kind[:40]!r}; expected {', '.join(FORMATS)}", "response_format")
    said = text_field(form, "text")
    if not said:
        raise RequestError("no text; expected what was said in the field text", "text")

    def align_file(path: Path, name: str, check: Check) -> tuple[str, float]:
        total = audio_seconds(path)
        words = aligner.words_of(said)
        completed = aligner.completed(words)
        align_one = RecordingAligner(completed, progress=lambda _, seconds: check(seconds, total))
        aligned = align_one(Recording(NAME, path, (Utterance(NAME, "", tuple(words), path),)))
        if reason := aligned.utterances[0].reason:
            raise RequestError(reason, "text")
        return _text(kind, aligned._replace(audio=name), completed), aligned.seconds

    text = await process_file(service, usage, form, receive, align_file)
    return Response(text, media_type=JSON if kind == "json" else TEXT)


def _text(kind: str, aligned: Alignment, aligner: ForcedAligner) -> str:
    """Return the content of the answer."""
    if kind == "json":
        content = as_json(aligned, doubtful_stretches(aligned, THRESHOLD))
        words = [word.text for utterance in aligned.utterances for word in utterance.words]
        if aligner.guessed:
            content["guessed"] = [{"word": entry.word, "phones": list(entry.phones)} for entry in aligner.guessed]
        if unknown := aligner.unknown(words):
            content["unknown"] = unknown
        if annotated := Counter(filter(None, aligner.kinds(words))):
            content["annotations"] = annotated
        return json.dumps(content, ensure_ascii=False)
    with scratch_directory() as directory:
        path = directory / f"{NAME}.TextGrid"
        aligned.save(path)
        return path.read_text(encoding="utf-8")
