"""Requests that send a file in a form, and errors in the form of OpenAI's interface."""

import asyncio
import contextlib
import logging
import math
import shutil
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive

from readers.audio.duration import audio_seconds
from readers.errors import ArgonautError
from recipes.serve.limits import BusyError, Limits
from recipes.serve.service import Service, Usage

MOST_TEXT = 500  # characters of a message
KINDS = {401: "invalid_request_error", 403: "invalid_request_error", 500: "server_error", 503: "server_error"}
MOST_FIELDS, FIELD_SIZE = 50, 1 << 16
FORM, CHARSETS = "multipart/form-data", ("utf-8", "utf8", "us-ascii")
FORM_EXTRA = 1 << 20  # bytes of a request beside the file
MOST_ID = 64  # characters
Tool = TypeVar("Tool")
Check = Callable[[float | None, float | None], None]  # takes the seconds of audio that are done, and all

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


def error_response(
    status: int,
    message: str,
    param: str | None = None,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return a response {"error": {"message", "type", "param", "code"}}.

    Parameters
    ----------
    status : int
        HTTP status.
    message : str
    param : str, optional
        The field of the request that is wrong.
    code : str, optional
        A word for programs.
    headers : mapping, optional
    """
    kind = KINDS.get(status, "invalid_request_error")
    content = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return JSONResponse(content, status, headers)


def one_line(fault: Exception) -> str:
    """Return the message of a fault for a client: one line, not too long, without halves of surrogate pairs.

    Parameters
    ----------
    fault : Exception
    """
    text = " ".join(str(fault).split())
    return (text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}...").encode(errors="replace").decode()


async def answer(
    service: Service,
    request: Request,
    respond: Callable[[Service, Usage, FormData, Receive], Awaitable[Response]],
) -> Response:
    """Read the form of a request, and return what `respond` makes of it, or an error."""
    try:
        with service.stream("file") as usage:
            form = await _read_form(request, service.limits)
            try:
                return await respond(service, usage, form, request.receive)
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
        logger.exception("a request with a file ended with an internal error")
        return error_response(500, "internal error", code="internal_error")


async def answer_with(
    service: Service,
    request: Request,
    tool: Tool | None,
    needed: str,
    code: str,
    respond: Callable[[Tool, Service, Usage, FormData, Receive], Awaitable[Response]],
) -> Response:
    """Return what `answer` makes of a tool that not every bundle allows; without it, an error.

    needed: what the bundle lacks then; code: of the error; respond: takes the tool first.
    """
    if tool is None:
        return error_response(404, f"{service.name}: no {needed}; expected a bundle with one", code=code)
    return await answer(service, request, partial(respond, tool))


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


def text_field(form: FormData, name: str) -> str:
    """Return a field of a form without blanks at its ends, "" if it is missing; raises RequestError for a file."""
    value = form.get(name, "")
    if not isinstance(value, str):
        raise RequestError(f"{name}: a file; expected text", name)
    return value.strip()


async def process_file(
    service: Service,
    usage: Usage,
    form: FormData,
    receive: Receive,
    work: Callable[[Path, str, Check], tuple[str, float]],
    longest: float = math.inf,
) -> str:
    """Return what `work` makes, in a thread, of the file of a form.

    work: takes the file, its name at the client, and a function to call with the progress; returns a text, and the
    duration of the audio in seconds.  longest: seconds of audio, if the server's limit is not lower.
    """
    upload = form.get("file")
    if not isinstance(upload, UploadFile):
        raise RequestError("no file; expected audio in the field file", "file")
    progress_id = text_field(form, "progress_id")[:MOST_ID]
    begin = time.perf_counter()
    try:
        with _watched(receive) as gone:
            longest = min(longest, service.limits.file_seconds)
            text, seconds = await service.decode_file(usage, _work, service, upload, work, gone, longest, progress_id)
    finally:
        service.progress.pop(progress_id, None)
    service.count_audio(usage, seconds)
    service.metrics.answers.observe(time.perf_counter() - begin)
    return text


def _work(
    service: Service,
    upload: UploadFile,
    work: Callable[[Path, str, Check], tuple[str, float]],
    gone: threading.Event,
    longest: float,
    progress_id: str,
) -> tuple[str, float]:
    """Store an upload, and return what `work` makes of it; runs in a thread."""
    name = Path(upload.filename or "audio").name or "audio"

    def check(seconds: float | None, total: float | None = None) -> None:
        if gone.is_set():
            raise AbandonedError
        if progress_id and seconds is not None and total:
            service.progress[progress_id] = seconds, total
        if seconds is not None and seconds > longest:
            raise RequestError(f"{name}: {seconds:.0f} s of audio; expected at most {longest:g} s", "file", 413)

    check(None)
    with service.directory() as directory:
        path = directory / "audio"
        with path.open("wb") as file:
            shutil.copyfileobj(upload.file, file)
        if path.stat().st_size > service.limits.upload_bytes:
            raise _too_large(service.limits)
        try:
            check(audio_seconds(path))
            return work(path, name, check)
        except (ArgonautError, OSError) as fault:
            raise RequestError(str(fault).replace(str(path), name), "file", code="invalid_audio") from fault


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
