"""The options of commands that read audio: its channel and sample rate, and the format of audio without a header."""

import argparse

from readers.errors import ConfigError


def add_audio_options(group) -> None:
    """Add --channel and --upsample."""
    group.add_argument(
        "--channel", metavar="N", help="channel of audio with several, counted from 0, or mix, the mean of all"
    )
    group.add_argument(
        "--upsample", action="store_true", help="accept audio of a lower sample rate than that of the training"
    )


def channel_of(text: str | None) -> int | str | None:
    """Return the value of --channel, None without it.  Raises ConfigError for other text."""
    from readers.audio.audio_file import MIX
    from readers.common.text import is_count

    if text is None or text == MIX:
        return text
    if not is_count(text):
        raise ConfigError(f"command line: --channel {text}; expected a number from 0, or {MIX}")
    return int(text)


def add_raw_options(group, channels: bool = False) -> None:
    """Add the options; `channels`: also --channels."""
    group.add_argument(
        "--rate", type=int, metavar="HZ", help="sampling rate of audio without a header (default: from the header)"
    )
    group.add_argument(
        "--encoding",
        metavar="NAME",
        help="encoding of audio without a header: s16le (default), s16be, s8, u8, s24le, s24be, s32le, s32be, f32le, "
        "f32be, mulaw or alaw",
    )
    if channels:
        group.add_argument(
            "--channels", type=int, metavar="N", help="number of channels of audio without a header (default 1)"
        )


def raw_format(arguments: argparse.Namespace):
    """Return the RawFormat of the options, None without --rate.  Raises ConfigError for wrong options."""
    from readers.audio.raw import PCM_16, RawFormat

    channels = getattr(arguments, "channels", None)
    if arguments.rate is None:
        for name, value in (("--encoding", arguments.encoding), ("--channels", channels)):
            if value is not None:
                raise ConfigError(f"command line: {name} without --rate; expected the sampling rate, too")
        return None
    raw = RawFormat(arguments.rate, arguments.encoding or PCM_16, 1 if channels is None else channels)
    try:
        raw.check()
    except ConfigError as fault:
        raise ConfigError(f"command line: {fault}") from fault
    return raw
