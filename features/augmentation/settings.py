"""What augmentation makes of each recording, and which files it takes noise and impulse responses from."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from readers.audio.audio_file import Channel
from readers.errors import ConfigError

SLOWEST, FASTEST = 0.5, 2.0
LARGEST_SNR = 100.0  # dB
LOUDEST = 100.0  # factor of the amplitude
LONGEST_PAUSE = 3600.0  # seconds
MOST_COPIES = 10_000

Range = tuple[float, float]


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
    kind : {"speed", "noise", "foreground", "babble", "reverb", "volume"}
    prefix : str
        Begins the names of the copies, such as `sp0.9-` and `noise1-`.
    speed : float
        1 unless the kind is "speed".
    """

    kind: str
    prefix: str
    speed: float = 1.0


@dataclass(frozen=True)
class Augmentation:
    """The copies to make of every recording.

    Parameters
    ----------
    speeds : tuple of float
        A copy is made for each factor, 0.5 to 2, not 1.
    noises : tuple of Recording
        Background noises: one is drawn for each copy, and repeated or cut to the length of the speech.
    foreground : tuple of Recording
        Noises that occur one after the other.
    interval : float
        Pause between foreground noises in seconds.
    talkers : tuple of Recording
        Speech of which babble is made.
    num_talkers : (int, int)
        Least and largest number of voices in babble.
    responses : tuple of Recording
        Impulse responses: one is drawn for each copy.
    snr : (float, float)
        Range of the signal-to-noise ratio in dB, drawn uniformly.
    volume : (float, float) or None
        Range of the factor by which the amplitude of every copy is multiplied; its logarithm is drawn uniformly.
    copies : int
        Number of copies of each kind, except of each speed.
    seed : int
        Different seeds draw differently.

    Raises
    ------
    ConfigError
        For values out of range, and if no copies are wanted.
    """

    speeds: tuple[float, ...] = ()
    noises: tuple[Recording, ...] = ()
    foreground: tuple[Recording, ...] = ()
    interval: float = 1.0
    talkers: tuple[Recording, ...] = ()
    num_talkers: tuple[int, int] = (3, 7)
    responses: tuple[Recording, ...] = ()
    snr: Range = (5.0, 20.0)
    volume: Range | None = None
    copies: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for speed in self.speeds:
            _expect(
                SLOWEST <= speed <= FASTEST and speed != 1,
                f"speed {speed:g}; expected {SLOWEST:g} to {FASTEST:g}, but not 1",
            )
        names = [f"{speed:g}" for speed in self.speeds]
        _expect(len(set(names)) == len(names), f"speeds {', '.join(names)} (to 6 digits); expected each once")
        low, high = self.snr
        _expect(
            -LARGEST_SNR <= low <= high <= LARGEST_SNR,
            f"signal-to-noise ratio {low:g}:{high:g}; expected -{LARGEST_SNR:g} to {LARGEST_SNR:g} dB, the lower first",
        )
        if self.volume is not None:
            low, high = self.volume
            _expect(
                0 < low <= high <= LOUDEST,
                f"volume {low:g}:{high:g}; expected factors above 0, to {LOUDEST:g}, the lower first",
            )
        fewest, most = self.num_talkers
        _expect(1 <= fewest <= most, f"talkers {fewest}:{most}; expected at least 1, the lower number first")
        _expect(
            0 <= self.interval <= LONGEST_PAUSE, f"interval {self.interval:g}; expected 0 to {LONGEST_PAUSE:g} seconds"
        )
        _expect(1 <= self.copies <= MOST_COPIES, f"copies {self.copies}; expected 1 to {MOST_COPIES}")
        _expect(self.seed >= 0, f"seed {self.seed}; expected 0 or more")
        _expect(
            bool(list(self.plan())), "no copies; expected speeds, a volume, or a list of noises, talkers or responses"
        )

    def plan(self) -> Iterator[Copy]:
        """Yield the copies of every recording."""
        for speed in self.speeds:
            yield Copy("speed", f"sp{speed:g}-", speed)
        kinds = (
            ("noise", "noise", self.noises),
            ("foreground", "fg", self.foreground),
            ("babble", "babble", self.talkers),
            ("reverb", "rvb", self.responses),
        )
        wanted = [(kind, prefix) for kind, prefix, files in kinds if files]
        if self.volume is not None and not (wanted or self.speeds):
            wanted = [("volume", "vol")]
        for kind, prefix in wanted:
            for number in range(1, self.copies + 1):
                yield Copy(kind, f"{prefix}{number}-")


def _expect(holds: bool, fault: str) -> None:
    if not holds:
        raise ConfigError(f"augmentation: {fault}")
