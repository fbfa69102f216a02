"""The job that serves a bundle until a signal stops it."""

import asyncio
import importlib.util
from dataclasses import dataclass

from readers.common.environment import available_cores, using_cores
from readers.common.report import Log, silent
from readers.errors import ConfigError
from recipes.serve.options import ServeOptions

PACKAGES = ("starlette", "uvicorn", "websockets", "python_multipart")


@dataclass(frozen=True)
class ServeResult:
    """What was served.

    Attributes
    ----------
    num_streams, num_refused : int
        Number of streams and files, and of those that were refused.
    seconds : float
        Duration of their audio.
    ended_in_order : bool
        Whether no stream had to be cut off.
    is_decoding : bool
        Whether a file was not finished within the grace period: its thread still runs, and Python would wait for it.
    """

    num_streams: int
    num_refused: int
    seconds: float
    ended_in_order: bool
    is_decoding: bool


def require_packages() -> None:
    """Raise ConfigError unless the packages of the extra `serve` are installed."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"argonaut serve: {', '.join(missing)} not installed; expected the packages of the server; "
            "pip install '.[serve]'"
        )


def serve(options: ServeOptions, *, log: Log = silent) -> ServeResult:
    """Recognise speech for other programs, with one bundle, until SIGTERM or Ctrl-C.

    Parameters
    ----------
    options : ServeOptions
    log : callable
        Receives warnings about the access, lines about hotwords, new words and guessed pronunciations, and one when the
        server listens.

    Returns
    -------
    ServeResult

    Raises
    ------
    ConfigError
        Without the packages of the extra `serve`, and for a certificate or token that cannot be used.
    ArgonautError, OSError
        For a bundle or a port that cannot be opened.

    Examples
    --------
    ``serve(ServeOptions(bundle="en.argo", port=0), log=print).num_streams``
    """
    require_packages()
    cores = min(options.threads or available_cores(), available_cores())
    with using_cores(1):  # each stream and each file is decoded by one thread
        return _serve(options, cores, log)


def _serve(options: ServeOptions, cores: int, log: Log) -> ServeResult:
    from decoder import Recognizer
    from readers.audio.audio_file import MIX
    from readers.common.jobs.stop_signals import interrupts_noted
    from recipes.serve.application import make_application
    from recipes.serve.running import address, is_loopback, make_server, open_sockets
    from recipes.serve.security import AccessPolicy, is_private, read_token
    from recipes.serve.service import Service

    access = options.access
    limits = options.limits
    token = None if access.token_file is None else read_token(access.token_file)
    if access.token_file is not None and not is_private(access.token_file):
        log(f"warning: {access.token_file}: other users can read the token; chmod 600")
    names = [*access.allow_host, *([options.host] if options.host else [])]
    origins = frozenset(origin.lower().rstrip("/") for origin in access.allow_origin)
    policy = AccessPolicy(frozenset(name.lower() for name in names), origins, token)
    recognizer = Recognizer.load(options.bundle)
    channel = MIX if recognizer.front_end.config.channel is None else None
    recognizer = recognizer.with_audio(channel=channel, upsample=options.upsample)
    recognizer = options.hotwords.with_words(recognizer, log)
    if options.grammar is not None:
        chosen = {} if options.threshold is None else {"threshold": options.threshold}
        recognizer = recognizer.with_grammar(options.grammar, **chosen)
    recognizer = options.hotwords.applied_to(recognizer, log)
    service = Service(recognizer, limits, cores)
    service.warm_up()
    with interrupts_noted() as should_stop:
        server = make_server(make_application(service, policy), service, should_stop, access.tls_cert, access.tls_key)
        sockets = open_sockets(options.host, options.port)
        if token is None and not is_loopback(sockets):
            log(
                "warning: other machines can use the server without a token; expected the option token-file or "
                "the option host 127.0.0.1"
            )
        where = ", ".join(address(listener, access.tls_cert is not None) for listener in sockets)
        log(f"{service.name}: listening on {where}; streams {limits.streams}; threads {cores}")
        asyncio.run(server.serve(sockets))
    is_decoding = service.is_decoding
    if is_decoding:
        service.remove_files()
    metrics = service.metrics
    return ServeResult(
        metrics.streams_total.total(), metrics.streams_refused.total(), metrics.audio_seconds, server.ended_in_order,
        is_decoding,
    )  # fmt: skip
