"""OpenAI's HTTP interface for transcriptions: POST /v1/audio/transcriptions with a form.

References
----------
OpenAI API reference, "Create transcription"; openai-python, types/audio/transcription_create_params.py.
"""

from pathlib import Path

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from recipes.serve.files.formats import FORMATS, media_type, response_text
from recipes.serve.files.requests import Check, RequestError, answer, process_file, text_field
from recipes.serve.service import Service, Usage

OTHER_NAMES = ("whisper-1",)  # of the model, which programs send that cannot be told another one
WITHOUT_EFFECT = ("prompt", "temperature", "chunking_strategy", "include[]", "include")
GRANULARITIES = ("word", "segment", "phone")  # phones are not in OpenAI's interface
KNOWN_FIELDS = (
    *("file", "model", "language", "response_format", "timestamp_granularities[]", "timestamp_granularities"),
    *("stream", "max_alternatives", "progress_id", *WITHOUT_EFFECT),
)
MOST_ALTERNATIVES = 100
IGNORED = "X-Argonaut-Ignored"  # the header that names fields without effect


async def transcribe(service: Service, request: Request) -> Response:
    """Answer one request."""
    return await answer(service, request, _transcribe_form)


async def _transcribe_form(service: Service, usage: Usage, form: FormData, receive: Receive) -> Response:
    form_name = text_field(form, "response_format") or "json"
    if form_name not in FORMATS:
        raise RequestError(f"response_format {form_name[:40]!r}; expected {', '.join(FORMATS)}", "response_format")
    _check_model(service, form)
    granularities = _granularities(form)
    alternatives = _alternatives(form)
    if text_field(form, "stream").lower() in ("true", "1"):
        raise RequestError("stream: true; expected false; for results while audio arrives, use the WebSocket", "stream")

    def recognise(path: Path, name: str, check: Check) -> tuple[str, float]:
        recognizer = service.with_phones if "phone" in granularities else service.recognizer
        transcript = recognizer.transcribe(path, progress=check)
        stem = Path(name).stem
        text = response_text(form_name, transcript, stem, service.language, granularities, alternatives)
        return text, transcript.seconds

    text = await process_file(service, usage, form, receive, recognise)
    ignored = [name for name in dict.fromkeys(form) if name in WITHOUT_EFFECT or name not in KNOWN_FIELDS]
    headers = {IGNORED: _header(ignored)} if ignored else None
    return Response(text, media_type=media_type(form_name), headers=headers)


def _header(names: list[str]) -> str:
    """Return names as the value of a header."""
    text = ", ".join("".join(character if "!" <= character <= "~" else "?" for character in name) for name in names)
    return text[:200].strip()


def _check_model(service: Service, form: FormData) -> None:
    """Raise RequestError for another model or language than that of the server."""
    model = text_field(form, "model")
    language = text_field(form, "language")
    if model and model not in (service.name, *OTHER_NAMES):
        raise RequestError(
            f"model {model[:60]!r}; expected {service.name} or {', '.join(OTHER_NAMES)}",
            "model",
            404,
            "model_not_found",
        )
    if language and service.language and _primary(language) != _primary(service.language):
        raise RequestError(f"language {language[:40]!r}; expected {service.language}, the model's", "language")
    temperature = text_field(form, "temperature")
    try:
        fits = not temperature or 0 <= float(temperature) <= 1
    except ValueError:
        fits = False
    if not fits:
        raise RequestError(f"temperature {temperature[:40]!r}; expected a number from 0 to 1", "temperature")


def _primary(language: str) -> str:
    """Return the language of a tag such as en-US."""
    return language.replace("_", "-").partition("-")[0].lower()


def _granularities(form: FormData) -> tuple[str, ...]:
    names = ("timestamp_granularities[]", "timestamp_granularities")
    values = tuple(str(value) for name in names for value in form.getlist(name))
    for granularity in values:
        if granularity not in GRANULARITIES:
            raise RequestError(
                f"timestamp_granularities {granularity[:40]!r}; expected {', '.join(GRANULARITIES)}",
                "timestamp_granularities",
            )
    return values


def _alternatives(form: FormData) -> int:
    text = text_field(form, "max_alternatives")
    if text and not (text.isascii() and text.isdecimal() and int(text) <= MOST_ALTERNATIVES):
        raise RequestError(
            f"max_alternatives {text[:40]!r}; expected a whole number up to {MOST_ALTERNATIVES}", "max_alternatives"
        )
    return int(text or 0)
