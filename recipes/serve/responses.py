"""Answers with errors, in the form of OpenAI's interface."""

from collections.abc import Mapping

from starlette.responses import JSONResponse

MOST_TEXT = 500  # characters of a message
KINDS = {401: "invalid_request_error", 403: "invalid_request_error", 500: "server_error", 503: "server_error"}


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
