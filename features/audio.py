"""Reads audio for a configuration: one channel, resampled to the sample rate of SOURCERATE if it has another one."""

from pathlib import Path

from features.config import FeatureConfig
from readers.audio.audio_file import read_audio
from readers.audio.parts import audio_part
from readers.audio.resampling import resample
from readers.common.arrays import Float32Array
from readers.errors import ConfigError
from readers.htk.units import TICKS_PER_SECOND


def read_samples(path: str | Path, config: FeatureConfig, notes: list[str] | None = None) -> tuple[Float32Array, float]:
    """Read the channel of an audio file from which features are computed.

    Parameters
    ----------
    path : path
        File, or part of one, `PATH[first,last]` or `PATH[first,last,channel]`; this channel has precedence.
    config : FeatureConfig
    notes : list of str, optional
        Receives what is unusual about the file, as in `readers.audio.read_audio`.

    Returns
    -------
    samples : (N,) float32
        On the scale of 16-bit integers.
    rate : float
        In Hz: that of SOURCERATE or, without it, that of the file.

    Raises
    ------
    FormatError
        For a file that cannot be read, a missing channel, and a part that the file does not have.
    ConfigError
        For a sample rate below that of SOURCERATE, unless the configuration accepts it.
    """
    part = audio_part(path)
    channel = config.channel if part.channel is None else part.channel
    samples, rate = read_audio(part.path, channel, config.raw, part.first, part.last, notes)
    target = target_rate(config, rate, part.path)
    return (samples, rate) if target == rate else (resample(samples, rate, target), target)


def target_rate(config: FeatureConfig, rate: float, where: str) -> float:
    """Return the sample rate in Hz to which audio is resampled.  Raises ConfigError for one that is too low."""
    if not config.source_rate or config.is_source_rate(rate):
        return rate
    target = round(TICKS_PER_SECOND / config.source_rate)
    if rate < target and not config.upsample:
        raise ConfigError(
            f"{where}: sample rate {rate:g} Hz; expected at least {target} Hz, from SOURCERATE = "
            f"{config.source_rate:g}; the option upsample accepts audio without the "
            "upper frequencies"
        )
    return target
