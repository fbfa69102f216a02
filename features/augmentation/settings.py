"""What augmentation makes of each recording, and which files it takes noise and impulse responses from."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from readers.audio.audio_file import Channel
from readers.config.options import Options, option
from readers.errors import ConfigError

SLOWEST, FASTEST = 0.5, 2.0
LARGEST_SNR = 100.0  # dB
LOUDEST = 100.0  # factor of the amplitude
LONGEST_PAUSE = 3600.0  # seconds
MOST_COPIES = 10_000


@dataclass(frozen=True)
class Recording:
    """An audio file, or a part of it.

    Parameters
    ----------
    name : str
        Without extension.
    path : Path
    first, last : int or None
        First and last sample, counted from 0; None for the whole file.
    channel : int, "mix" or None
        Channel of the file, counted from 0, or the mean of all; None for a file with one channel.
    speaker : str or None
    """

    name: str
    path: Path
    first: int | None = None
    last: int | None = None
    channel: Channel = None
    speaker: str | None = None


@dataclass(frozen=True)
class Copy:
    """One copy of a recording.

    Parameters
    ----------
    kind : {"speed", "noise", "foreground", "babble", "reverb", "world", "volume"}
    prefix : str
        Begins the names of the copies, such as `sp0.9-` and `noise1-`.
    speed : float
        1 unless the kind is "speed".
    """

    kind: str
    prefix: str
    speed: float = 1.0


@dataclass(frozen=True, kw_only=True)
class CopyOptions(Options):
    """Which copies are made, and the ranges from which a value is drawn for each: uniformly, that of `volume` in ln."""

    speeds: tuple[float, ...] = option(
        (), "a copy with each of these speeds", check=lambda speed: SLOWEST <= speed <= FASTEST and speed != 1,
        expected=f"{SLOWEST:g} to {FASTEST:g}, but not 1", flag="--speed", metavar="X,X", separator=",",
        heading="copies",
    )  # fmt: skip
    world: int = option(
        0,
        "multi-condition copies, each with some of: a simulated room, noise, hum, music or babble, a "
        "telephone, another level, clipping",
        least=0,
        most=MOST_COPIES,
    )
    copies: int = option(1, "copies of each kind but speed and world", least=1, most=MOST_COPIES)
    snr: tuple[float, ...] = option(
        (5.0, 20.0), "signal-to-noise ratio in dB", unit="dB", least=-LARGEST_SNR, most=LARGEST_SNR, separator=":",
        metavar="LOW:HIGH", heading="ranges, from which a value is drawn for each copy",
    )  # fmt: skip
    volume: tuple[float, ...] | None = option(
        None, "factor of the amplitude of all copies; alone it makes copies", above=0, most=LOUDEST, separator=":",
        metavar="LOW:HIGH",
    )  # fmt: skip
    num_talkers: tuple[int, ...] = option(
        (3, 7), "number of voices in babble", least=1, flag="--talkers", metavar="LOW:HIGH", separator=":"
    )
    interval: float = option(
        1.0, "pause between foreground noises", unit="seconds", least=0, most=LONGEST_PAUSE, metavar="SECONDS"
    )
    seed: int = option(0, "another seed draws other values", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [f"{speed:g}" for speed in self.speeds]
        is_distinct = len(set(names)) == len(names)
        self.require("speeds", is_distinct, f"is {', '.join(names)} (to 6 digits); expected each once")
        for name in ("snr", "volume", "num_talkers"):
            if span := getattr(self, name):
                low, high, *excess = span if len(span) > 1 else 2 * span
                text = f"is {':'.join(f'{value:g}' for value in span)}; expected a number, or two, the lower first"
                self.require(name, low <= high and not excess, text)
                object.__setattr__(self, name, (low, high))


@dataclass(frozen=True, kw_only=True)
class Augmentation(CopyOptions):
    """The copies to make of every recording.

    Parameters
    ----------
    noises : tuple of Recording
        Background noises: one is drawn for each copy, and repeated or cut to the length of the speech.
    foreground : tuple of Recording
        Noises that occur one after the other.
    talkers : tuple of Recording
        Speech of which babble is made.
    responses : tuple of Recording
        Impulse responses: one is drawn for each copy.

    Raises
    ------
    ConfigError
        If no copies are wanted.
    """

    noises: tuple[Recording, ...] = ()
    foreground: tuple[Recording, ...] = ()
    talkers: tuple[Recording, ...] = ()
    responses: tuple[Recording, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not list(self.plan()):
            raise ConfigError(
                "augmentation: no copies; expected speeds, a volume, world, or a list of noises, talkers or responses"
            )

    def plan(self) -> Iterator[Copy]:
        """Yield the copies of every recording."""
        for speed in self.speeds:
            yield Copy("speed", f"sp{speed:g}-", speed)
        for number in range(1, self.world + 1):
            yield Copy("world", f"world{number}-")
        kinds = (
            ("noise", "noise", self.noises),
            ("foreground", "fg", self.foreground),
            ("babble", "babble", () if self.world else self.talkers),
            ("reverb", "rvb", self.responses),
        )
        kinds_used = [(kind, prefix) for kind, prefix, files in kinds if files]
        if self.volume is not None and not (kinds_used or self.speeds or self.world):
            kinds_used = [("volume", "vol")]
        for kind, prefix in kinds_used:
            for number in range(1, self.copies + 1):
                yield Copy(kind, f"{prefix}{number}-")
