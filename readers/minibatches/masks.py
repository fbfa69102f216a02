"""SpecAugment: random masks over frames and over channels of the features that a network is trained with.

Masks are drawn for each utterance and sweep from a hash of the seed, the sweep and the name of the utterance, so they
depend neither on the order of the data nor on where a training was resumed.
Source: Park et al., SpecAugment: A simple data augmentation method for automatic speech recognition, Interspeech 2019.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from readers.config.config import Config
from readers.config.feature_record import FeatureRecord
from readers.config.options import Options, given, option
from readers.errors import ConfigError

SPECTRA = ("FBANK", "MELSPEC")  # kinds whose rows are channels
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class MaskOptions(Options):
    """The block specAugment of a feature stream."""

    time_masks: int = option(2, "masks over frames of each utterance", least=0, most=100)
    time_width: int = option(
        20, "largest width of these masks; it is drawn uniformly from 0 to this", unit="frames", least=0, most=10_000
    )
    time_fraction: float = option(0.2, "largest width of these masks as a fraction of the utterance", above=0, most=1)
    frequency_masks: int = option(2, "masks over channels of each utterance", least=0, most=100)
    frequency_width: int = option(
        8, "largest width of these masks; it is drawn uniformly from 0 to this", unit="channels", least=0, most=10_000
    )
    where: str = given("", '"file:line" of the block')

    @classmethod
    def from_block(cls, block: Config, **values: Any) -> Self:
        """Return the options that a block sets.  Raises ConfigError, also for an unknown name."""
        block.refuse_unknown(cls.option_keys())
        return super().from_block(block, where=block.where(), **values)


def channels_of(record: FeatureRecord | None, dim: int) -> np.ndarray | None:
    """Return the channel of each row of a feature vector, (dim,) int64, -1 for energies.

    Static values, deltas and accelerations have the same channels.  None if the rows are not channels of a spectrum.
    """
    base, *qualifiers = str(record.settings.get("TARGETKIND", "") if record else "").split("_")
    if base not in SPECTRA:
        return None
    energy = "E" in qualifiers
    absolute = "N" not in qualifiers
    blocks = 1 + sum(qualifier in qualifiers for qualifier in "DAT")
    size, remainder = divmod(dim + (not absolute), blocks)
    if remainder:
        return None
    block = np.append(np.arange(size - 1), -1) if energy else np.arange(size)
    rows = np.tile(block, blocks)
    return rows if absolute else np.delete(rows, size - 1)


def check_channels(options: MaskOptions, channels: np.ndarray | None) -> None:
    """Raise ConfigError for frequency masks of features without channels, or wider than the number of channels."""
    if not options.frequency_masks:
        return
    if channels is None:
        raise ConfigError(
            f"{options.where}: frequencyMasks is {options.frequency_masks}, but the rows of the features are not "
            f"channels of a spectrum; expected features of kind {' or '.join(SPECTRA)}, or frequencyMasks=0"
        )
    if options.frequency_width > channels.max() + 1:
        raise ConfigError(
            f"{options.where}: frequencyWidth is {options.frequency_width}; expected at most {channels.max() + 1}, "
            "the number of channels"
        )


class SpecAugment:
    """Masks the frames of one stream.

    Parameters
    ----------
    options : MaskOptions
    keys : sequence of str
        Name of each utterance, U of them.
    num_frames : (U,) int64
    channels : (dim,) int64 or None
        Of `channels_of`; None for features without channels.
    seed : int

    Raises
    ------
    ConfigError
        For frequency masks of features without channels, or wider than the number of channels.
    """

    def __init__(
        self, options: MaskOptions, keys: Sequence[str], num_frames: np.ndarray, channels: np.ndarray | None, seed: int
    ):
        self.options = options
        self._num_frames = num_frames
        self._channels = channels
        self._num_channels = 0 if channels is None else int(channels.max()) + 1
        check_channels(options, channels)
        digests = [hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()[:8] for key in keys]
        self._hashes = np.frombuffer(b"".join(digests), "<u8")
        self._seed = seed

    def draw(self, utterances: np.ndarray, sweep: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the masks of utterances (n,) in a sweep.

        Returns
        -------
        times : (2, time masks, n) int64
            First frame of each mask, and the frame after its last one.
        channels : (2, frequency masks, n) int64
        """
        options = self.options
        frames = self._num_frames[utterances]
        widest = np.minimum(options.time_width, (options.time_fraction * frames).astype(np.int64))
        drawn = self._uniform(utterances, sweep, options.time_masks + options.frequency_masks)
        times, channels = np.split(drawn, [options.time_masks], axis=1)
        return _place(times, widest, frames), _place(channels, options.frequency_width, self._num_channels)

    def _uniform(self, utterances: np.ndarray, sweep: int, count: int) -> np.ndarray:
        """Return (2, count, n) numbers in [0, 1)."""
        run = int.from_bytes(hashlib.sha256(f"{self._seed} {sweep}".encode()).digest()[:8], "little")
        index = np.arange(1, 2 * count + 1, dtype=np.uint64)[:, None]
        with np.errstate(over="ignore"):
            mixed = _scramble((self._hashes[utterances] ^ np.uint64(run))[None] + index * _GOLDEN)
        return ((mixed >> np.uint64(11)) * 2.0**-53).reshape(2, count, len(utterances))

    def mask(
        self, windows: np.ndarray, utterances: np.ndarray, frames: np.ndarray, sweep: int, means: np.ndarray
    ) -> None:
        """Replace masked values by the mean of their row over the utterance.

        Parameters
        ----------
        windows : (n, width, dim) float32
            Frames with their context; modified.
        utterances : (n,) int64
        frames : (n, width) int64
            Number of each frame in its utterance; those beyond its ends are repetitions of the first and last frame.
        sweep : int
        means : (n, dim) float32
            Mean of each row over the utterance.
        """
        times, channels = self.draw(utterances, sweep)
        frames = np.clip(frames, 0, self._num_frames[utterances, None] - 1)
        masked = np.zeros(windows.shape, bool)
        begins, ends = times[..., None]
        masked |= ((frames >= begins) & (frames < ends)).any(axis=0)[:, :, None]
        if channels.size:
            begins, ends = channels[..., None]
            masked |= ((self._channels >= begins) & (self._channels < ends)).any(axis=0)[:, None, :]
        np.copyto(windows, means[:, None, :], where=masked)


def _place(drawn: np.ndarray, widest: np.ndarray | int, length: np.ndarray | int) -> np.ndarray:
    """Return first and end (2, masks, n) of intervals within a length for uniform numbers (2, masks, n)."""
    widths = (drawn[0] * (np.asarray(widest) + 1)).astype(np.int64)
    begins = (drawn[1] * (np.asarray(length) - widths + 1)).astype(np.int64)
    return np.stack([begins, begins + widths])


def _scramble(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return hashed numbers (splitmix64, Steele et al. 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
