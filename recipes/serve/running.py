"""Opens the port, runs the server with uvicorn, and stops it in order."""

import asyncio
import contextlib
import ipaddress
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from readers.errors import ConfigError
from recipes.serve.service import Service
from recipes.serve.websocket import ABORT

REQUEST_SECONDS = 20.0  # for the head of a request, and for an answer that the client does not read
CLOSE_SECONDS = 15.0  # from the end of a WebSocket to the end of its connection
ACCEPTED = 128  # connections that are accepted before any is served
CONNECTIONS_PER_STREAM, MORE_CONNECTIONS = 4, 64  # open at a time


class HttpProtocol(H11Protocol):
    """Drops connections on which nothing happens: no complete request, or an answer that is not read.

    When too many are open, it drops the oldest that wait.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as that of uvicorn
        """Begin to watch the connection."""
        super().connection_made(transport)
        self.since = self.loop.time()
        assert self.limit_concurrency is not None  # `make_server` sets it
        while len(self.connections) >= self.limit_concurrency:
            watched = (
                connection
                for connection in self.connections
                if isinstance(connection, HttpProtocol | WebSocketProtocol)
            )
            oldest = min((connection for connection in watched if connection.is_waiting), key=lambda one: one.since)
            self.connections.discard(oldest)
            oldest.transport.abort()
        self._watch(None)

    @property
    def is_waiting(self) -> bool:
        """Whether there is no request that is answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching."""
        self._watching.cancel()
        super().connection_lost(exc)

    def _watch(self, before: Any) -> None:
        """Drop the connection if it is where it was at the last call; call this again later."""
        if self.transport.get_protocol() is not self:  # a WebSocket now
            return
        waits = self.is_waiting
        now = (self.cycle, waits, self.transport.get_write_buffer_size() if self.flow.write_paused else None)
        if now == before and (waits or self.flow.write_paused):
            self.transport.abort()
            return
        self._watching = self.loop.call_later(REQUEST_SECONDS, self._watch, now)


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """Reads nothing from a client that does not read, and lets the application drop the connection."""

    _dropping: asyncio.TimerHandle | None = None
    since = 0.0  # one that should have been closed is dropped before all others that wait

    @property
    def is_waiting(self) -> bool:
        """Whether the connection has no use any more."""
        return self._dropping is not None

    def handle_connect(self, event: Any) -> None:
        """Begin the handshake."""
        super().handle_connect(event)
        if hasattr(self, "scope"):
            self.scope["extensions"][ABORT] = {"call": self.transport.abort}

    def pause_writing(self) -> None:
        """Stop reading: pings would be answered into a buffer that only grows."""
        super().pause_writing()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read again, unless a message waits."""
        super().resume_writing()
        if not self.read_paused:
            self.transport.resume_reading()

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """Drop the connection soon, should the client not close it."""
        super().on_task_complete(task)
        if not self.disconnected:
            self._dropping = self.loop.call_later(CLOSE_SECONDS, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection."""
        if self._dropping is not None:
            self._dropping.cancel()
        super().connection_lost(exc)


class Server(uvicorn.Server):
    """Runs until `should_stop` returns True; then open streams get their last result."""

    def __init__(self, config: uvicorn.Config, service: Service, should_stop: Callable[[], bool]):
        super().__init__(config)
        self.service = service
        self.should_stop = should_stop
        self.ended_in_order = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the caller."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Return whether to stop."""
        return await super().on_tick(counter) or self.should_stop()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no connections any more, let streams end, then close the others."""
        for server in self.servers:
            server.close()
        self.ended_in_order = await self.service.stop()
        if not self.ended_in_order:
            logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # streams that are cut off are no faults
        await super().shutdown(sockets)


def make_server(
    application: ASGIApp,
    service: Service,
    should_stop: Callable[[], bool],
    certificate: Path | None = None,
    key: Path | None = None,
) -> Server:
    """Return a server.

    Parameters
    ----------
    application : ASGIApp
    service : Service
    should_stop : callable
        Asked ten times a second.
    certificate, key : str, optional
        Files in PEM format, for TLS.

    Raises
    ------
    ConfigError
        For a certificate that cannot be used.
    """
    for name in ("uvicorn", "python_multipart"):
        logging.getLogger(name).setLevel(logging.ERROR)  # clients with broken requests are no news
    limits = service.limits
    config = uvicorn.Config(
        application,
        loop="asyncio",
        http=HttpProtocol,
        ws=WebSocketProtocol,
        ws_max_size=limits.message,
        ws_ping_interval=None,  # a client that waits for its turn may not be read for longer than a ping may take
        ws_per_message_deflate=False,  # a small message could become a large one
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS_PER_STREAM * limits.streams + MORE_CONNECTIONS,
        backlog=ACCEPTED,
        timeout_graceful_shutdown=1,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    try:
        config.load()
    except (ssl.SSLError, OSError, ValueError) as fault:
        raise ConfigError(
            f"{certificate}, {key}: {fault}; expected a certificate and its key in PEM format, without a password"
        ) from fault
    return Server(config, service, should_stop)


def open_sockets(host: str, port: int) -> list[socket.socket]:
    """Open a port on all addresses of a host; port 0 is one that the system chooses.

    Raises
    ------
    ConfigError
        For a host or port that cannot be used.
    """
    sockets: list[socket.socket] = []
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, location in dict.fromkeys(addresses):
            listener = socket.socket(family, socket.SOCK_STREAM)
            sockets.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(
                (location[0], sockets[0].getsockname()[1] if port == 0 and len(sockets) > 1 else port, *location[2:])
            )
            listener.listen(2048)
    except (OSError, OverflowError) as fault:
        for listener in sockets:
            listener.close()
        reason = getattr(fault, "strerror", None) or fault
        raise ConfigError(f"{host}:{port}: {reason}; expected an address of this machine and a free port") from fault
    return sockets


def is_loopback(sockets: list[socket.socket]) -> bool:
    """Whether only this machine can reach the sockets."""
    return all(ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback for listener in sockets)


def address(one: socket.socket, secure: bool) -> str:
    """Return the address of a socket for a browser."""
    host, port = one.getsockname()[:2]
    return f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
