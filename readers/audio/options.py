"""Options of jobs that read audio: its channel and sample rate, and the format of audio without a header."""

from dataclasses import dataclass

from readers.audio.audio_file import MIX, Channel
from readers.audio.raw import ENCODINGS, MAX_CHANNELS, PCM_16, RawFormat
from readers.common.text import is_count
from readers.config.options import Options, option


def is_channel(channel: int | str) -> bool:
    """Whether a value is a number from 0, or MIX."""
    return channel == MIX or (isinstance(channel, int) and channel >= 0)


@dataclass(frozen=True, kw_only=True)
class ChannelOptions(Options):
    """Which channel of audio files is read."""

    channel: Channel = option(
        None, "channel of audio with several, counted from 0, or mix, the mean of all", check=is_channel,
        expected=f"a number from 0, or {MIX}", metavar="N",
    )  # fmt: skip

    def __post_init__(self) -> None:
        if isinstance(self.channel, str) and is_count(self.channel):
            object.__setattr__(self, "channel", int(self.channel))
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class AudioFileOptions(ChannelOptions):
    """How audio files are read."""

    upsample: bool = option(False, "accept audio of a lower sample rate than that of the training")
    rate: int | None = option(
        None, "sampling rate of audio without a header (default: from the header)", unit="Hz", least=1, metavar="HZ"
    )
    encoding: str | None = option(
        None, "encoding of audio without a header: s16le (default), s16be, s8, u8, s24le, s24be, s32le, s32be, f32le, "
        "f32be, mulaw or alaw", check=ENCODINGS.__contains__, expected=f"one of {', '.join(ENCODINGS)}", metavar="NAME",
    )  # fmt: skip
    channels: int | None = option(
        None, "number of channels of audio without a header (default 1)", least=1, most=MAX_CHANNELS
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("encoding", "channels"):
            is_alone = self.rate is None and getattr(self, name) is not None
            self.require(name, not is_alone, "is given without {rate}; expected the sampling rate, too")

    @property
    def raw(self) -> RawFormat | None:
        """The format of audio without a header, None if it has one."""
        if self.rate is None:
            return None
        return RawFormat(self.rate, self.encoding or PCM_16, 1 if self.channels is None else self.channels)
