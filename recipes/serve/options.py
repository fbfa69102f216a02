"""The options of the server."""

import math
from dataclasses import dataclass
from pathlib import Path

from readers.config.options import Options, group, option


@dataclass(frozen=True, kw_only=True)
class LimitOptions(Options):
    """What clients may ask of the server."""

    max_streams: int = option(8, "streams and files at the same time", least=1, heading="limits")
    max_upload: float = option(100.0, "size of an uploaded file, in MiB", above=0, metavar="MIB")
    max_file: float = option(
        3600.0, "duration of an uploaded file", unit="seconds", above=0, most=math.inf, metavar="SECONDS"
    )
    max_stream: float = option(
        14400.0, "duration of a stream", unit="seconds", above=0, most=math.inf, metavar="SECONDS"
    )
    idle: float = option(
        60.0, "time without data that ends a stream", unit="seconds", above=0, most=math.inf, metavar="SECONDS"
    )
    grace: float = option(
        10.0, "time for open streams when stopping", unit="seconds", above=0, most=math.inf, metavar="SECONDS"
    )


@dataclass(frozen=True, kw_only=True)
class AccessOptions(Options):
    """Who may use the server."""

    token_file: Path | None = option(None, "file with the token that clients must present", heading="access")
    tls_cert: Path | None = option(None, "certificate chain in PEM format, for https and wss")
    tls_key: Path | None = option(None, "its private key in PEM format")
    allow_host: tuple[str, ...] = option(
        (),
        "name by which clients call the server, besides IP addresses, localhost and the machine's name",
        metavar="NAME",
    )
    allow_origin: tuple[str, ...] = option(
        (), "other web page that may use the server, such as https://example.org", metavar="ORIGIN"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
            is_alone = getattr(self, name) is not None and getattr(self, other) is None
            self.require(name, not is_alone, f"is given without {{{other}}}; expected both")


@dataclass(frozen=True, kw_only=True)
class ServeOptions(Options):
    """What is served, and where.

    Raises
    ------
    OptionFault
        For a value out of range, and a certificate or a key alone.
    """

    bundle: Path = option(help="file or directory that argonaut pack made", flag="BUNDLE", metavar="BUNDLE")
    host: str = option("127.0.0.1", "address to listen on (default 127.0.0.1: this machine)", metavar="NAME")
    port: int = option(2700, "port to listen on; 0: a free one", least=0, most=65535)
    threads: int | None = option(None, "number of cores to use (default: all)", least=1, flag="-j --threads")
    upsample: bool = option(False, "accept audio of a lower sample rate than that of the training")
    limits: LimitOptions = group(LimitOptions)
    access: AccessOptions = group(AccessOptions)
