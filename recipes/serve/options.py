"""The options of the server."""

from dataclasses import dataclass
from pathlib import Path

from decoder.recognizer.jobs.options import TranscribeOptions
from decoder.search.hotword_options import GuessedHotwordOptions
from readers.config.options import Options, group, like, option
from recipes.serve.limits import Limits


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
        for name, partner in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
            is_alone = getattr(self, name) is not None and getattr(self, partner) is None
            self.require(name, not is_alone, f"is given without {{{partner}}}; expected both")


@dataclass(frozen=True, kw_only=True)
class ServeOptions(Options):
    """What is served, and where.

    Raises
    ------
    OptionFault
        For a value out of range, and a certificate or a key alone.
    """

    bundle: Path = option(
        help="file that argonaut pack made, or an installed one such as en", flag="BUNDLE", metavar="BUNDLE"
    )
    host: str = option("127.0.0.1", "address to listen on (default 127.0.0.1: this machine)", metavar="NAME")
    port: int = option(2700, "port to listen on; 0: a free one", least=0, most=65535)
    threads: int | None = option(None, "number of cores to use (default: all)", least=1, flag="-j --threads")
    grammar: Path | None = option(None, "recognise the sentences of this grammar only, as `transcribe` does")
    threshold: float | None = like(TranscribeOptions, "threshold")
    upsample: bool = option(False, "accept audio of a lower sample rate than that of the training")
    hotwords: GuessedHotwordOptions = group(GuessedHotwordOptions)
    limits: Limits = group(Limits)
    access: AccessOptions = group(AccessOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("threshold", self.threshold is None or self.grammar is not None, "is given without {grammar}")
