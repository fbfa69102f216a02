"""What one client may ask of the server, and the refusals."""

from dataclasses import dataclass
from math import inf

from readers.config.options import Options, given, option

MEGABYTE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Limits(Options):
    """Limits of the server."""

    streams: int = option(8, "streams and files at the same time", least=1, flag="--max-streams", heading="limits")
    upload: float = option(100.0, "size of an uploaded file, in MiB", above=0, flag="--max-upload", metavar="MIB")
    file_seconds: float = option(
        3600.0, "duration of an uploaded file", unit="seconds", above=0, most=inf, flag="--max-file", metavar="SECONDS"
    )
    stream_seconds: float = option(
        4 * 3600.0, "duration of a stream", unit="seconds", above=0, most=inf, flag="--max-stream", metavar="SECONDS"
    )
    idle: float = option(
        60.0, "time without data that ends a stream", unit="seconds", above=0, most=inf, metavar="SECONDS"
    )
    grace: float = option(
        10.0, "time for open streams when stopping", unit="seconds", above=0, most=inf, metavar="SECONDS"
    )
    message: int = given(MEGABYTE, "size of a WebSocket message in bytes")
    upload_seconds: float = given(600.0, "time that an upload may take in all")

    @property
    def upload_bytes(self) -> int:
        """Size of an uploaded file in bytes."""
        return round(self.upload * MEGABYTE)


class BusyError(Exception):
    """The server takes no more streams at present."""


class AccessError(Exception):
    """A request that is refused before it is read, with its HTTP status."""

    def __init__(self, status: int, message: str, code: str):
        super().__init__(message)
        self.status = status
        self.code = code
