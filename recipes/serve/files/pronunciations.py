"""Scores of pronunciation over HTTP: POST /v1/audio/pronunciations with a form of a file and the text to be said.

The answer is that of `argonaut pronounce --format json`.
"""

from pathlib import Path

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from decoder.recognizer.jobs.pronunciation.assessor import PronunciationAssessor
from decoder.recognizer.jobs.pronunciation.result import text_of
from readers.audio.duration import audio_seconds
from readers.errors import FormatError, GraphError
from recipes.serve.files.formats import JSON
from recipes.serve.files.requests import Check, RequestError, answer_with, process_file, text_field
from recipes.serve.service import Service, Usage

LONGEST = 60.0  # seconds of a sentence, which is aligned as a whole
MOST_CHARACTERS = 1000


async def pronounce(service: Service, request: Request) -> Response:
    """Answer one request."""
    needed = "map of pronunciation scores"
    return await answer_with(service, request, service.assessor, needed, "no_pronunciation_scores", _pronounce_form)


async def _pronounce_form(
    assessor: PronunciationAssessor, service: Service, usage: Usage, form: FormData, receive: Receive
) -> Response:
    said = text_field(form, "text")
    if not 0 < len(said) <= MOST_CHARACTERS:
        raise RequestError(f"text of {len(said)} characters; expected 1 to {MOST_CHARACTERS}, to be said", "text")

    def assess(path: Path, name: str, check: Check) -> tuple[str, float]:
        if audio_seconds(path) is None:
            raise FormatError(f"{name}: no length in its header; expected a WAV, FLAC or MP3 file")
        try:
            pronunciation = assessor.assess(path, said)
        except GraphError as fault:  # of words
            raise RequestError(str(fault), "text") from fault
        return text_of("json", name, pronunciation), pronunciation.seconds

    text = await process_file(service, usage, form, receive, assess, longest=LONGEST)
    return Response(text, media_type=JSON)
