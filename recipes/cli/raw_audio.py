"""The options `--rate` and `--encoding` of commands that read audio."""

import argparse

from readers.errors import ConfigError


def add_raw_options(group) -> None:
    group.add_argument(
        "--rate", type=int, metavar="HZ", help="sampling rate of audio without a header (default: from the header)"
    )
    group.add_argument(
        "--encoding",
        metavar="NAME",
        help="encoding of audio without a header: s16le (default), s16be, s8, u8, s32le, s32be, f32le, f32be, mulaw or "
        "alaw",
    )


def raw_format(arguments: argparse.Namespace):
    """Return the RawFormat of the options, None without --rate.  Raises ConfigError for wrong options."""
    from readers.audio.raw import PCM_16, RawFormat

    if arguments.rate is None:
        if arguments.encoding is not None:
            raise ConfigError("command line: --encoding without --rate; expected the sampling rate, too")
        return None
    raw = RawFormat(arguments.rate, arguments.encoding or PCM_16)
    try:
        raw.check()
    except ConfigError as fault:
        raise ConfigError(f"command line: {fault}") from fault
    return raw
