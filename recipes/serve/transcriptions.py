"""OpenAI's HTTP interface for transcriptions: POST /v1/audio/transcriptions with a form.

References
----------
OpenAI API reference, "Create transcription"; openai-python, types/audio/transcription_create_params.py.
"""

import asyncio
import contextlib
import logging
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive

from readers.audio.duration import audio_seconds
from readers.errors import ArgonautError
from recipes.serve.formats import FORMATS, media_type, response_text
from recipes.serve.limits import BusyError, Limits
from recipes.serve.responses import error_response, one_line
from recipes.serve.service import Service, Usage

OTHER_NAMES = ("whisper-1",)  # of the model, which programs send that cannot be told another one
WITHOUT_EFFECT = ("prompt", "temperature", "chunking_strategy", "include[]", "include")
GRANULARITIES = ("word", "segment")
KNOWN_FIELDS = (
    *("file", "model", "language", "response_format", "timestamp_granularities[]", "timestamp_granularities"),
    *("stream", "max_alternatives", "progress_id", *WITHOUT_EFFECT),
)
MOST_ALTERNATIVES, MOST_ID = 100, 64
MOST_FIELDS, FIELD_SIZE = 50, 1 << 16
FORM, CHARSETS = "multipart/form-data", ("utf-8", "utf8", "us-ascii")
FORM_EXTRA = 1 << 20  # bytes of a request beside the file
IGNORED = "X-Argonaut-Ignored"  # the header that names fields without effect

logger = logging.getLogger("argonaut.serve")


class RequestError(Exception):
    """A request that cannot be answered."""

    def __init__(self, message: str, param: str | None = None, status: int = 400, code: str | None = None):
        super().__init__(message)
        self.param = param
        self.status = status
        self.code = code


class AbandonedError(Exception):
    """The client has gone, or the server stops."""


async def transcribe(service: Service, request: Request) -> Response:
    """Answer one request."""
    try:
        with service.stream("file") as usage:
            form = await _read_form(request, service.limits)
            try:
                return await _transcribe_form(service, usage, form, request.receive)
            finally:
                await form.close()
    except BusyError as fault:
        return error_response(503, str(fault), code="overloaded", headers={"Retry-After": "2"})
    except RequestError as fault:
        service.metrics.errors["client"] += 1
        return error_response(fault.status, one_line(fault), fault.param, fault.code)
    except (ClientDisconnect, AbandonedError):
        service.metrics.errors["disconnected"] += 1
        return Response(status_code=400)
    except Exception:
        service.metrics.errors["internal"] += 1
        logger.exception("a transcription ended with an internal error")
        return error_response(500, "internal error", code="internal_error")


async def _read_form(request: Request, limits: Limits) -> FormData:
    """Return the fields of a request; raises RequestError for one that is too large or too slow."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data":
        raise RequestError(f"content type {kind.decode('latin-1') or 'missing'!r}; expected {FORM}", status=415)
    charset = options.get(b"charset", b"utf-8").decode("latin-1").lower()
    if charset not in CHARSETS:
        raise RequestError(f"charset {charset[:40]!r}; expected utf-8", status=415)
    most = limits.upload_bytes + FORM_EXTRA
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > most:
        raise _too_large(limits)
    limited = Request(request.scope, _limited(request.receive, most, limits))
    try:
        async with asyncio.timeout(limits.upload_seconds):
            return await limited.form(max_files=1, max_fields=MOST_FIELDS, max_part_size=FIELD_SIZE)
    except TimeoutError:
        raise RequestError("no data for too long, or an upload that took too long", status=408) from None
    except HTTPException as fault:
        raise RequestError(f"form: {fault.detail}") from None


def _limited(receive: Receive, most: int, limits: Limits) -> Receive:
    """Return `receive`, which raises RequestError for a body above `most` bytes and TimeoutError without data."""
    size = 0

    async def receiving() -> Message:
        nonlocal size
        message = await asyncio.wait_for(receive(), limits.idle)
        size += len(message.get("body", b""))
        if size > most:
            raise _too_large(limits)
        return message

    return receiving


def _too_large(limits: Limits) -> RequestError:
    return RequestError(f"a file above the limit of {limits.upload_bytes >> 20} MiB", "file", 413, "file_too_large")


async def _transcribe_form(service: Service, usage: Usage, form: FormData, receive: Receive) -> Response:
    form_name = _text(form, "response_format") or "json"
    if form_name not in FORMATS:
        raise RequestError(f"response_format {form_name[:40]!r}; expected {', '.join(FORMATS)}", "response_format")
    _check_model(service, form)
    progress_id = _text(form, "progress_id")[:MOST_ID]
    how = {"granularities": _granularities(form), "alternatives": _alternatives(form), "language": service.language}
    if _text(form, "stream").lower() in ("true", "1"):
        raise RequestError("stream: true; expected false; for results while audio arrives, use the WebSocket", "stream")
    upload = form.get("file")
    if not isinstance(upload, UploadFile):
        raise RequestError("no file; expected audio in the field file", "file")
    begin = time.perf_counter()
    try:
        with _watched(receive) as gone:
            call = _recognize, service, upload, form_name, how, gone, progress_id
            text, seconds = await service.decode_file(usage, *call)
    except (ArgonautError, OSError) as fault:
        raise RequestError(str(fault), "file", code="invalid_audio") from fault
    finally:
        service.progress.pop(progress_id, None)
    service.count_audio(usage, seconds)
    service.metrics.answers.observe(time.perf_counter() - begin)
    ignored = [name for name in dict.fromkeys(form) if name in WITHOUT_EFFECT or name not in KNOWN_FIELDS]
    headers = {IGNORED: _header(ignored)} if ignored else None
    return Response(text, media_type=media_type(form_name), headers=headers)


@contextlib.contextmanager
def _watched(receive: Receive) -> Iterator[threading.Event]:
    """Yield an event that is set when the client has gone, and at the end of the body."""
    gone = threading.Event()

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()

    watching = asyncio.ensure_future(watch())
    try:
        yield gone
    finally:
        watching.cancel()
        gone.set()


def _header(names: list[str]) -> str:
    """Return names as the value of a header."""
    text = ", ".join("".join(character if "!" <= character <= "~" else "?" for character in name) for name in names)
    return text[:200].strip()


def _recognize(
    service: Service, upload: UploadFile, form_name: str, how: dict[str, Any], gone: threading.Event, progress_id: str
) -> tuple[str, float]:
    """Return the transcript of an upload as text, and the duration of its audio; runs in a thread."""
    name = Path(upload.filename or "audio").name or "audio"

    def check(seconds: float | None, total: float | None = None) -> None:
        if gone.is_set():
            raise AbandonedError
        if progress_id and seconds is not None and total:
            service.progress[progress_id] = seconds, total
        if seconds is not None and seconds > service.limits.file_seconds:
            raise RequestError(
                f"{name}: {seconds:.0f} s of audio; expected at most {service.limits.file_seconds:g} s", "file", 413
            )

    check(None)
    with service.directory() as directory:
        path = directory / "audio"
        with path.open("wb") as file:
            shutil.copyfileobj(upload.file, file)
        try:
            if path.stat().st_size > service.limits.upload_bytes:
                raise _too_large(service.limits)
            check(audio_seconds(path))
            transcript = service.recognizer.transcribe(path, progress=check)
        except (ArgonautError, OSError) as fault:
            raise RequestError(str(fault).replace(str(path), name), "file") from fault
        return response_text(form_name, transcript, Path(name).stem, **how), transcript.seconds


def _text(form: FormData, name: str) -> str:
    value = form.get(name, "")
    if not isinstance(value, str):
        raise RequestError(f"{name}: a file; expected text", name)
    return value.strip()


def _check_model(service: Service, form: FormData) -> None:
    """Raise RequestError for another model or language than that of the server."""
    model = _text(form, "model")
    language = _text(form, "language")
    if model and model not in (service.name, *OTHER_NAMES):
        raise RequestError(
            f"model {model[:60]!r}; expected {service.name} or {', '.join(OTHER_NAMES)}",
            "model",
            404,
            "model_not_found",
        )
    if language and service.language and _primary(language) != _primary(service.language):
        raise RequestError(f"language {language[:40]!r}; expected {service.language}, the model's", "language")
    temperature = _text(form, "temperature")
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
                f"timestamp_granularities {granularity[:40]!r}; expected {' or '.join(GRANULARITIES)}",
                "timestamp_granularities",
            )
    return values


def _alternatives(form: FormData) -> int:
    text = _text(form, "max_alternatives")
    if text and not (text.isascii() and text.isdecimal() and int(text) <= MOST_ALTERNATIVES):
        raise RequestError(
            f"max_alternatives {text[:40]!r}; expected a whole number up to {MOST_ALTERNATIVES}", "max_alternatives"
        )
    return int(text or 0)
