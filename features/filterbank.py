"""The mel filterbank: triangular filters with peak 1 on the mel scale, with HTK's choice of bins and frequency warping.

Source: HTK Book 3.4, section 5.4 (filterbank) and 5.6 (vocal tract length normalisation).
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from features.config import FeatureConfig
from readers.common.arrays import Float64Array
from readers.errors import ConfigError


def mel(hertz: npt.ArrayLike) -> Float64Array:
    """Convert Hz to HTK's mel scale, elementwise."""
    return 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)


def hertz(mels: npt.ArrayLike) -> Float64Array:
    """Convert mel to Hz, elementwise."""
    return 700.0 * np.expm1(np.asarray(mels, np.float64) / 1127.0)


def band_limits(config: FeatureConfig, sample_rate: float) -> tuple[float, float]:
    """Return the (lowest, highest) frequency of the filterbank in Hz."""
    nyquist = sample_rate / 2
    low = max(config.low_frequency, 0.0)
    high = config.high_frequency if config.high_frequency >= 0 else nyquist
    if high > nyquist * (1 + 1e-6):
        raise ConfigError(f"HIFREQ = {high:g}; expected at most {nyquist:g} Hz, half the sample rate of the audio")
    if low >= high:
        raise ConfigError(f"LOFREQ = {low:g}; expected less than {high:g} Hz, the upper limit for this audio")
    return low, high


def filter_centres(config: FeatureConfig, sample_rate: float) -> Float64Array:
    """Return mel frequencies (num_channels + 2,) float64: lower limit, centres 1..num_channels, upper limit.

    All except the lower limit are warped.
    """
    limits = band_limits(config, sample_rate)
    low, high = mel(limits)
    centres = low + np.arange(config.num_channels + 2) * ((high - low) / (config.num_channels + 1))
    if config.warp != 1.0:
        centres[1:] = mel(warp_frequency(hertz(centres[1:]), config, *limits))
    return centres


def warp_frequency(frequency: Float64Array, config: FeatureConfig, low: float, high: float) -> Float64Array:
    """Apply the piecewise linear warp in Hz: slope 1/WARPFREQ between the corners, lines to (low, high) outside."""
    scale = 1.0 / config.warp
    upper_corner = config.warp_high_cutoff * 2 / (1 + scale)
    lower_corner = config.warp_low_cutoff * 2 / (1 + scale)
    if not low < lower_corner or not upper_corner < high:
        raise ConfigError(
            f"WARPFREQ = {config.warp:g}: corners {lower_corner:g} and {upper_corner:g} Hz after warping; "
            f"expected both between {low:g} and {high:g} Hz"
        )
    upper_slope = (high - upper_corner * scale) / (high - upper_corner)
    lower_slope = (lower_corner * scale - low) / (lower_corner - low)
    return np.where(
        frequency > upper_corner,
        upper_slope * (frequency - upper_corner) + scale * upper_corner,
        np.where(frequency < lower_corner, lower_slope * (frequency - low) + low, scale * frequency),
    )


def filter_weights(config: FeatureConfig, sample_rate: float, fft_length: int) -> Float64Array:
    """Return the weights (num_bins, num_channels) float64 of spectrum bins; bin b is at b * sample_rate / fft_length
    Hz.

    The first and the Nyquist bin have weight 0, as in HTK and Kaldi.  Raises ConfigError for a filter without any bin,
    whose output would be constant.
    """
    resolution = sample_rate / fft_length
    if config.num_channels > fft_length // 2:
        raise ConfigError(
            f"NUMCHANS = {config.num_channels}; expected at most {fft_length // 2}, the number of spectrum bins"
        )
    first_bin = 1
    last_bin = fft_length // 2 - 1
    # HTK counts bins from 1 and rounds the limits to bins; here they count from 0.  Kaldi does not round: bins outside
    # the limits are outside all filters.
    if config.kaldi:
        low, high = band_limits(config, sample_rate)
        first_bin = int(low / resolution) + 1
        last_bin = min(last_bin, int(np.ceil(high / resolution)) - 1)
    elif config.low_frequency >= 0:
        first_bin = max(1, int(config.low_frequency / resolution + 2.5) - 1)
    if config.high_frequency >= 0 and not config.kaldi:
        last_bin = min(last_bin, int(config.high_frequency / resolution + 0.5) - 1)
    centres = filter_centres(config, sample_rate)
    bins = np.arange(first_bin, last_bin + 1)
    positions = mel(bins * resolution)
    check_every_filter_has_a_bin(positions, centres, resolution, hertz(centres))
    # lower: number of centres 1..num_channels + 1 strictly below the bin, at most num_channels.
    lower = np.minimum(np.searchsorted(centres[1:], positions, side="left"), config.num_channels)
    falling = (centres[lower + 1] - positions) / (centres[lower + 1] - centres[lower])
    padded = np.zeros((fft_length // 2 + 1, config.num_channels + 2))  # columns 0 and num_channels + 1 are not filters
    padded[bins, lower] = falling
    padded[bins, lower + 1] = 1.0 - falling
    return padded[:, 1:-1]


def sphinx_filter_weights(config: FeatureConfig, sample_rate: float, fft_length: int) -> Float64Array:
    """Return the weights (num_bins, num_channels) float64 of spectrum bins, as CMU Sphinx computes them.

    The filters are triangles in Hz of area 1, whose corners are rounded to bins.  Raises ConfigError for corners that
    are the same bin.
    """
    resolution = sample_rate / fft_length
    corners = np.floor(hertz(filter_centres(config, sample_rate)) / resolution + 0.5)
    if np.any(np.diff(corners) < 1):
        raise ConfigError(
            f"NUMCHANS = {config.num_channels}: filter {int(np.argmin(np.diff(corners))) + 1} contains no spectrum bin "
            f"(one every {resolution:.2f} Hz); expected fewer channels or a longer WINDOWSIZE"
        )
    low, centre, high = corners[:-2], corners[1:-1], corners[2:]
    bins = np.arange(fft_length // 2 + 1)[:, None]
    triangles = np.minimum((bins - low) / (centre - low), (high - bins) / (high - centre))
    weights = np.maximum(triangles, 0.0) * (2.0 / ((high - low) * resolution))
    weights[-1] = 0.0  # Sphinx leaves out the Nyquist frequency
    return weights


def slaney_filter_weights(config: FeatureConfig, sample_rate: float, fft_length: int) -> Float64Array:
    """Return the weights (num_bins, num_channels) float64 of spectrum bins, as librosa computes them.

    The filters are triangles in Hz of area 1 at equal distances on Slaney's mel scale: 3 mel per 200 Hz below 1 kHz, 27
    per ln 6.4 above.  Raises ConfigError for a filter without any bin.

    References
    ----------
    M. Slaney, Auditory Toolbox, version 2, Interval Research Corporation, 1998.
    """
    resolution = sample_rate / fft_length
    lowest, highest = (
        3 * limit / 200 if limit < 1000 else 15 + 27 * math.log(limit / 1000) / math.log(6.4)
        for limit in band_limits(config, sample_rate)
    )
    mels = np.linspace(lowest, highest, config.num_channels + 2)
    corners = np.where(mels < 15, mels * (200 / 3), 1000 * np.exp((mels - 15) * (math.log(6.4) / 27)))
    bins = np.arange(fft_length // 2 + 1, dtype=np.float64) * resolution
    check_every_filter_has_a_bin(bins, corners, resolution, corners)
    low, centre, high = corners[:-2], corners[1:-1], corners[2:]
    triangles = np.minimum((bins[:, None] - low) / (centre - low), (high - bins[:, None]) / (high - centre))
    return np.maximum(triangles, 0.0) * (2.0 / (high - low))


def check_every_filter_has_a_bin(
    positions: npt.NDArray[np.floating[Any]],
    centres: npt.NDArray[np.floating[Any]],
    resolution: float,
    frequencies: npt.NDArray[np.floating[Any]],
) -> None:
    """Raise ConfigError for a filter without bins.

    positions: of the bins, on the scale of the centres, increasing; frequencies: the centres in Hz.
    """
    first = np.searchsorted(positions, centres[:-2], side="right")
    empty = np.flatnonzero(np.searchsorted(positions, centres[2:], side="left") <= first)
    if empty.size:
        channel = int(empty[0])
        low, high = frequencies[[channel, channel + 2]]
        raise ConfigError(
            f"NUMCHANS = {len(centres) - 2}: filter {channel + 1} ({low:.1f} to {high:.1f} Hz) contains no spectrum "
            f"bin (one every {resolution:.2f} Hz); expected fewer channels or a longer WINDOWSIZE"
        )
