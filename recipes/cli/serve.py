"""Recognise speech for other programs: a WebSocket and HTTP server with one bundle.

worked example:
  argonaut serve an4.argo
answers on this machine, port 2700:
  ws://127.0.0.1:2700      the WebSocket protocol of vosk-server, for audio while it is spoken
  http://127.0.0.1:2700/v1/audio/transcriptions      OpenAI's interface, for files
  http://127.0.0.1:2700    a page with a microphone, in a browser
Other machines can connect with --host 0.0.0.0; then use --token-file, and --tls-cert with --tls-key.

The server needs more packages: pip install '.[serve]'
SIGTERM and Ctrl-C stop it: open streams get their last result within --grace seconds.
Exit status: 0 after that, 1 if streams had to be cut off.
"""

import argparse
import asyncio
import os
import sys

from readers.errors import ConfigError

PACKAGES = ("starlette", "uvicorn", "websockets", "python_multipart")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", metavar="BUNDLE", help="file or directory that argonaut pack made")
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="NAME", help="address to listen on (default 127.0.0.1: this machine)"
    )
    parser.add_argument("--port", type=int, default=2700, metavar="N", help="0: a free one (default 2700)")
    parser.add_argument("-j", "--threads", type=int, metavar="N", help="number of cores to use (default: all)")
    parser.add_argument(
        "--upsample", action="store_true", help="accept audio of a lower sample rate than that of the training"
    )
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--max-streams", type=int, default=8, metavar="N", help="streams and files at the same time (default 8)"
    )
    limits.add_argument(
        "--max-upload", type=float, default=100.0, metavar="MIB", help="size of an uploaded file (default 100)"
    )
    limits.add_argument(
        "--max-file", type=float, default=3600.0, metavar="SECONDS", help="duration of an uploaded file (default 3600)"
    )
    limits.add_argument(
        "--max-stream", type=float, default=14400.0, metavar="SECONDS", help="duration of a stream (default 14400)"
    )
    limits.add_argument(
        "--idle", type=float, default=60.0, metavar="SECONDS", help="time without data that ends a stream (default 60)"
    )
    limits.add_argument(
        "--grace", type=float, default=10.0, metavar="SECONDS", help="time for open streams when stopping (default 10)"
    )
    access = parser.add_argument_group("access")
    access.add_argument("--token-file", metavar="FILE", help="file with the token that clients must present")
    access.add_argument("--tls-cert", metavar="FILE", help="certificate chain in PEM format, for https and wss")
    access.add_argument("--tls-key", metavar="FILE", help="its private key in PEM format")
    access.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="name by which clients call the server, besides IP addresses, localhost and the machine's name",
    )
    access.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="other web page that may use the server, such as https://example.org",
    )


def run(arguments: argparse.Namespace) -> int:
    from readers.common.environment import available_cores, using_cores

    require_packages()
    check_options(arguments)
    cores = available_cores() if arguments.threads is None else min(arguments.threads, available_cores())
    with using_cores(1):  # each stream and each file is decoded by one thread
        return serve(arguments, cores)


def require_packages() -> None:
    """Raise ConfigError unless the packages of the extra `serve` are installed."""
    import importlib.util

    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"argonaut serve: {', '.join(missing)} not installed; expected the packages of the server; "
            "pip install '.[serve]'"
        )


def check_options(arguments: argparse.Namespace) -> None:
    if (arguments.tls_cert is None) != (arguments.tls_key is None):
        raise ConfigError("command line: --tls-cert or --tls-key alone; expected both")
    if not 0 <= arguments.port <= 65535:
        raise ConfigError(f"command line: --port {arguments.port}; expected 0 to 65535")
    if arguments.threads is not None and arguments.threads < 1:
        raise ConfigError(f"command line: --threads {arguments.threads}; expected at least 1")
    for name in ("max_streams", "max_upload", "max_file", "max_stream", "idle", "grace"):
        if not getattr(arguments, name) > 0:
            raise ConfigError(
                f"command line: --{name.replace('_', '-')} {getattr(arguments, name):g}; expected a number above 0"
            )


def serve(arguments: argparse.Namespace, cores: int) -> int:
    from decoder import Recognizer
    from readers.common.stop_signals import interrupts_noted
    from recipes.serve.application import make_application
    from recipes.serve.limits import MEGABYTE, Limits
    from recipes.serve.running import address, is_loopback, make_server, open_sockets
    from recipes.serve.security import AccessPolicy, is_private, read_token
    from recipes.serve.service import Service

    limits = Limits(
        streams=arguments.max_streams,
        upload=round(arguments.max_upload * MEGABYTE),
        file_seconds=arguments.max_file,
        stream_seconds=arguments.max_stream,
        idle=arguments.idle,
        grace=arguments.grace,
    )
    token = None if arguments.token_file is None else read_token(arguments.token_file)
    if token is not None and not is_private(arguments.token_file):
        print(f"warning: {arguments.token_file}: other users can read the token; chmod 600", file=sys.stderr)
    names = [*arguments.allow_host, *([arguments.host] if arguments.host else [])]
    origins = frozenset(origin.lower().rstrip("/") for origin in arguments.allow_origin)
    policy = AccessPolicy(frozenset(name.lower() for name in names), origins, token)
    recognizer = Recognizer.load(arguments.bundle).with_audio(upsample=arguments.upsample)
    if recognizer.front_end.config.channel is None:
        recognizer = recognizer.with_audio(channel="mix")
    service = Service(recognizer, limits, cores)
    service.warm_up()
    with interrupts_noted() as should_stop:
        application = make_application(service, policy)
        server = make_server(application, service, should_stop, arguments.tls_cert, arguments.tls_key)
        sockets = open_sockets(arguments.host, arguments.port)
        if token is None and not is_loopback(sockets):
            print(
                "warning: other machines can use the server without a token; expected --token-file or --host 127.0.0.1",
                file=sys.stderr,
            )
        where = ", ".join(address(one, arguments.tls_cert is not None) for one in sockets)
        print(
            f"{service.name}: listening on {where}; streams {limits.streams}; threads {cores}",
            file=sys.stderr,
            flush=True,
        )
        asyncio.run(server.serve(sockets))
    totals = service.metrics.streams_total.total(), service.metrics.audio_seconds
    print(f"streams {totals[0]}; audio {totals[1]:.0f} s; refused {service.metrics.streams_refused.total()}")
    if service.is_decoding:  # a thread cannot be stopped, and Python would wait for it
        print("a file was not finished within the grace period", file=sys.stderr, flush=True)
        sys.stdout.flush()
        service.remove_files()
        os._exit(1)
    return 0 if server.ended_in_order else 1
