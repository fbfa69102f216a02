"""What one client may ask of the server, and the refusals."""

from dataclasses import dataclass, fields

from readers.errors import ConfigError

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Limits of the server.

    Attributes
    ----------
    streams : int
        WebSockets and files that are recognised at the same time.
    message : int
        Bytes of a WebSocket message.
    upload : int
        Bytes of an uploaded file.
    file_seconds : float
        Duration of the audio of a file.
    stream_seconds : float
        Duration of the audio of a WebSocket.
    idle : float
        Seconds for which the server waits for data, and for a client to read an answer.
    upload_seconds : float
        Seconds that an upload may take in all.
    grace : float
        Seconds that open streams have to end when the server stops.

    Raises
    ------
    ConfigError
        Unless all are above 0.
    """

    streams: int = 8
    message: int = MEGABYTE
    upload: int = 100 * MEGABYTE
    file_seconds: float = 3600.0
    stream_seconds: float = 4 * 3600.0
    idle: float = 60.0
    upload_seconds: float = 600.0
    grace: float = 10.0

    def __post_init__(self):
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ConfigError(f"limit {field.name}: {getattr(self, field.name)}; expected a number above 0")


class BusyError(Exception):
    """The server takes no more streams at present."""


class AccessError(Exception):
    """A request that is refused before it is read, with its HTTP status."""

    def __init__(self, status: int, message: str, code: str):
        super().__init__(message)
        self.status, self.code = status, code
