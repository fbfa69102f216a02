"""Who may call the server: names of the host, origins of pages, and the access token."""

import hmac
import ipaddress
import socket
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from readers.common.text import read_lines
from readers.errors import FormatError
from recipes.serve.files.requests import error_response
from recipes.serve.limits import AccessError

LEAST_TOKEN = 16  # characters
OPEN_PATHS = ("/", "/healthz")  # and the files of the page: they need no token
PAGE = "/page/"
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; "
        "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(self)",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True)
class AccessPolicy:
    """Which requests are answered.

    A page elsewhere can make a browser call a server on loopback, under a name whose address it changes to 127.0.0.1
    (DNS rebinding).  Therefore the request must name the server by an IP address, localhost, the machine's name or one
    of `hosts`, and an Origin must be the server's own or one of `origins`.

    Attributes
    ----------
    hosts : frozenset of str
        Further names of the server, in lower case.
    origins : frozenset of str
        Origins of other pages that may call it, such as https://example.org, in lower case.
    token : str or None
        What clients must present; None if nothing.
    """

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    token: str | None = field(default=None, repr=False)

    def check(self, scope: Scope) -> None:
        """Raise AccessError for a request that is not answered."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_own_name(host):
            raise AccessError(
                403,
                f"host {host[:100]!r}; expected an IP address, localhost or another name that the server allows",
                "host",
            )
        origin = headers.get("origin")
        if origin is not None and not self._is_known_origin(origin, host):
            raise AccessError(
                403, f"origin {origin[:100]!r}; expected the server's own or one that the server allows", "origin"
            )
        if scope["path"].startswith(PAGE) and scope["type"] == "websocket":
            raise AccessError(404, f"{scope['path'][:100]}: no WebSocket; expected / or /asr", "not_found")
        if scope.get("method") == "OPTIONS" or scope["path"].startswith(PAGE):
            return
        if scope["type"] == "http" and scope["path"] in OPEN_PATHS:
            return
        if self.token is not None and not any(
            hmac.compare_digest(token.encode(), self.token.encode()) for token in _tokens(scope, headers)
        ):
            raise AccessError(401, "no valid access token; expected Authorization: Bearer TOKEN", "invalid_api_key")

    def allowed_origin(self, scope: Scope) -> str | None:
        """Return the origin of a page elsewhere that may read the answer, else None."""
        origin = Headers(scope=scope).get("origin")
        return origin if origin is not None and origin.lower() in self.origins else None

    def _is_own_name(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        if name in {"localhost", socket.gethostname().lower(), *self.hosts}:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _is_known_origin(self, origin: str, host: str) -> bool:
        if origin.lower() in self.origins:
            return True
        scheme, _, netloc = origin.lower().partition("://")
        return scheme in ("http", "https") and netloc == host.lower()


def _tokens(scope: Scope, headers: Headers) -> list[str]:
    """Return the tokens that a request presents.

    Browsers cannot give a WebSocket headers, so its address may have ?token=.
    """
    kind, _, token = headers.get("authorization", "").partition(" ")
    tokens = [token.strip()] if kind.lower() == "bearer" else []
    if scope["type"] == "websocket":
        tokens += parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
    return tokens


def read_token(path: str | Path) -> str:
    """Read an access token: the only line of a file.

    Raises
    ------
    FormatError
        For several lines, blanks, other characters than printable ASCII, and fewer than 16 characters.
    OSError
    """
    lines = [line.strip() for line in read_lines(path) if line.strip()]
    token = lines[0] if len(lines) == 1 else ""
    if len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise FormatError(
            f"{path}: {len(lines)} lines; expected one, with an access token of at least {LEAST_TOKEN} printable ASCII "
            "characters without blanks, such as `openssl rand -hex 32` prints"
        )
    return token


def is_private(path: str | Path) -> bool:
    """Whether other users cannot read a file."""
    return not Path(path).stat().st_mode & 0o077


class Gate:
    """ASGI middleware: refuses requests that the policy does not allow, and adds headers to all answers."""

    def __init__(self, app: ASGIApp, policy: AccessPolicy):
        self.app = app
        self.policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        try:
            self.policy.check(scope)
        except AccessError as fault:
            headers = {"WWW-Authenticate": "Bearer"} if fault.status == 401 else None
            response = error_response(fault.status, str(fault), code=fault.code, headers=headers)
            if scope["type"] == "websocket":
                await WebSocket(scope, receive, send).send_denial_response(response)
            else:
                await response(scope, receive, self._with_headers(scope, send))
            return
        if scope["type"] == "websocket":
            await self.app(scope, receive, send)
        elif scope["method"] == "OPTIONS":
            await self._preflight(scope)(scope, receive, self._with_headers(scope, send))
        else:
            await self.app(scope, receive, self._with_headers(scope, send))

    def _preflight(self, scope: Scope) -> Response:
        """Return the answer to the question of a browser whether a page elsewhere may send a request."""
        if self.policy.allowed_origin(scope) is None:
            return Response(status_code=204)
        headers = {"Access-Control-Allow-Methods": "GET, POST", "Access-Control-Allow-Headers": "*, Authorization"}
        return Response(status_code=204, headers=headers | {"Access-Control-Max-Age": "600"})

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        """Return `send`, which adds the security headers to the beginning of an answer."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                if origin := self.policy.allowed_origin(scope):
                    headers["Access-Control-Allow-Origin"] = origin
                    headers["Cross-Origin-Resource-Policy"] = "cross-origin"
                    headers.add_vary_header("Origin")
            await send(message)

        return sending
