"""Computes the feature matrix of one utterance from its samples."""

import functools
import math
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from features.cepstrum import (
    autocorrelation_matrix,
    equal_loudness,
    lifter_weights,
    mfcc_matrix,
    prediction,
    prediction_cepstra,
)
from features.config import FeatureConfig
from features.dynamics import deltas, normalise_energy, subtract_mean
from features.spectrum import FULL_SCALE, Spectrum
from readers.common.arrays import Array, Float32Array, Float64Array
from readers.common.environment import one_blas_thread
from readers.errors import ConfigError, ShapeError
from readers.htk.units import TICKS_PER_SECOND

if TYPE_CHECKING:
    from features.tracking.noise_removal import NoiseRemoval

FILTER_FLOOR = np.float32(1.0)  # HTK's melfloor, before the logarithm
KALDI_FLOOR = np.finfo(np.float32).eps
SPHINX_FLOOR = np.float32(1e-4)  # which Sphinx adds before the logarithm
LOG_ZERO = np.float32(-1.0e10)  # HTK's LZERO: log energy of a frame of zeros


def extract(samples: npt.ArrayLike, config: FeatureConfig, sample_rate: float) -> Float32Array:
    """Compute the features of one utterance.

    Parameters
    ----------
    samples : (N,) array
        One channel on the scale of 16-bit integers, any real dtype.
    config : FeatureConfig
    sample_rate : float
        In Hz.

    Returns
    -------
    (config.dim, T) float32, Fortran order
        T = (N - window) // hop + 1, with SNIPEDGES = F (N + hop // 2) // hop.  Rows: coefficients, c0 (_0), log energy
        (_E), then deltas (_D), accelerations (_A) and third differentials (_T) of these; _N removes the absolute
        energy.

    Raises
    ------
    ShapeError
        For samples that are not one channel, not finite or shorter than a window.
    ConfigError
        For options that do not match the sample rate, such as SOURCERATE.

    References
    ----------
    HTK Book 3.4, chapter 5.
    """
    plan = make_plan(config, float(sample_rate))
    samples = check_samples(samples, plan.spectrum)
    if config.dither:
        samples = add_dither(samples, config.dither, config.seed)
    return add_dynamics(plan.static_features(plan.spectrum.with_edges(samples)), config)


def frame_period(config: FeatureConfig, sample_rate: float) -> int:
    """Return the frame period in 100 ns units, as in the header of the feature file.

    Parameters
    ----------
    config : FeatureConfig
    sample_rate : float
        In Hz.

    Returns
    -------
    int
        Frame shift in whole samples, in 100 ns units.
    """
    return round(make_plan(config, float(sample_rate)).spectrum.hop * TICKS_PER_SECOND / sample_rate)


@dataclass(frozen=True)
class Plan:
    """The tables of one configuration at one sample rate.

    cepstral: (rows, num_channels), cosine transform of MFCC in float32, or autocorrelation matrix of PLP in float64.
    loudness: (num_channels, 1) float64 and lifter: (num_cepstra, 1) float64, for PLP.
    """

    config: FeatureConfig
    spectrum: Spectrum
    cepstral: Array | None = None
    loudness: Float64Array | None = None
    lifter: Float64Array | None = None

    @classmethod
    def make(cls, config: FeatureConfig, sample_rate: float) -> Self:
        check_source_rate(config, sample_rate)
        spectrum = Spectrum.make(config, sample_rate)
        if config.base_kind == "MFCC":
            return cls(config, spectrum, mfcc_matrix(config).astype(np.float32))
        if config.base_kind == "PLP":
            loudness = equal_loudness(config, sample_rate)[:, None]
            return cls(config, spectrum, autocorrelation_matrix(config), loudness, lifter_weights(config)[:, None])
        return cls(config, spectrum)

    def static_features(self, samples: Float32Array, carried: "Carried | None" = None) -> Float32Array:
        """Return the static features (num_static, T) of samples.  Raises ShapeError unless they are finite.

        carried: what a stream carries from the samples before, and to those that follow.
        """
        carried = carried or Carried()
        # With several threads, BLAS adds in another order; the features would depend on the machine.
        with one_blas_thread, np.errstate(over="ignore", invalid="ignore"):
            if self.config.base_kind == "WAVEFORM":
                static = waveform(samples, normalised=bool(self.config.toolkit))
            else:
                bank, energies = self.spectrum.filterbank(samples, carried.sample)
                if self.config.remove_noise:
                    carried.reduce_noise(bank)
                static = self.static_block(bank, energies)
        if not np.isfinite(static).all():
            problem = "a value is infinite or NaN" if not np.isfinite(samples).all() else "values are too large"
            raise ShapeError(f"samples: {problem}; expected finite numbers on the scale of 16-bit integers")
        return static

    def static_block(self, bank: Float32Array, energies: Float32Array | None) -> Float32Array:
        """Return the static features (num_static, T) for filter outputs and frame energies."""
        config = self.config
        rows = self.coefficients(bank)
        if energies is None:
            return rows
        if config.kaldi:
            energies = np.maximum(energies, KALDI_FLOOR)
        with np.errstate(divide="ignore"):
            log_energy = np.where(energies > 0, np.log(energies), LOG_ZERO)
        if config.normalise_energy:
            log_energy = normalise_energy(log_energy, config.energy_scale, config.silence_floor)
        static = np.empty((config.num_static, bank.shape[1]), np.float32, order="F")
        static[:-1] = rows
        static[-1] = log_energy
        return static

    def coefficients(self, bank: Float32Array) -> Float32Array:
        """Return the static features without energy; bank (num_channels, T) is overwritten."""
        kind = self.config.base_kind
        if kind == "MELSPEC":
            return bank
        if self.config.toolkit:
            return whisper_scale(bank) if self.config.toolkit == "WHISPER" else nemo_scale(bank)
        if self.config.sphinx:
            bank += SPHINX_FLOOR
        else:
            np.maximum(bank, KALDI_FLOOR if self.config.kaldi else FILTER_FLOOR, out=bank)
        if kind == "PLP":
            return self.plp(bank)
        np.log(bank, out=bank)
        if kind == "FBANK":
            return bank
        assert self.cepstral is not None
        return (bank.T @ self.cepstral.T).T

    def plp(self, bank: Float32Array) -> Float32Array:
        """Return the cepstra c1..cN and, with _0, the log of the prediction error (num_static without E, T)."""
        assert self.cepstral is not None
        assert self.loudness is not None
        assert self.lifter is not None
        auditory = (bank * self.loudness) ** self.config.compression
        a, error = prediction(self.cepstral @ auditory)
        cepstra = self.lifter * prediction_cepstra(a, self.config.num_cepstra)
        if self.config.has("0"):
            cepstra = np.vstack([cepstra, np.log(error)])
        return np.asfortranarray(cepstra, np.float32)


@dataclass
class Carried:
    """What SPHINX = T carries from frame to frame: the sample before the next frame, and the noise of the filters."""

    sample: float = 0.0
    noise: "NoiseRemoval | None" = None

    def reduce_noise(self, bank: Float32Array) -> None:
        """Reduce the noise in filter outputs (num_channels, T), in place."""
        from features.tracking.noise_removal import NoiseRemoval  # loads numba, which other features do not need

        self.noise = self.noise or NoiseRemoval()
        self.noise.reduce(bank)


def waveform(samples: Float32Array, normalised: bool) -> Float32Array:
    """Return samples from -1 to 1, (1, T); normalised: with mean 0 and deviation 1, as wav2vec 2.0 takes them."""
    scaled = samples / np.float32(FULL_SCALE)
    if normalised:
        deviation = math.sqrt(scaled.var(dtype=np.float64) + 1e-7)  # squares may be beyond float32
        scaled = (scaled - scaled.mean()) / np.float32(deviation)
    return np.asfortranarray(scaled[None])


def whisper_scale(bank: Float32Array) -> Float32Array:
    """Return log10 of filter outputs (num_channels, T), at most 8 below the largest, scaled as Whisper does."""
    logs = np.log10(np.maximum(bank, np.float32(1e-10)))
    return (np.maximum(logs, logs.max() - np.float32(8.0)) + np.float32(4.0)) / np.float32(4.0)


def nemo_scale(bank: Float32Array) -> Float32Array:
    """Return logs of filter outputs (num_channels, T), each row with mean 0 and deviation 1, as NeMo does."""
    # In float64, as the rounding of the mean of a row that does not change would be divided by 1e-5.
    logs = np.log(bank + np.float32(2.0**-24)).astype(np.float64)
    deviation = logs.std(axis=1, ddof=1, keepdims=True) if logs.shape[1] > 1 else 0.0
    return ((logs - logs.mean(axis=1, keepdims=True)) / (deviation + 1e-5)).astype(np.float32)


def check_source_rate(config: FeatureConfig, sample_rate: float) -> None:
    """Check that SOURCERATE, if given, agrees with the samples."""
    if config.source_rate and not config.is_source_rate(sample_rate):
        raise ConfigError(
            f"sample rate {sample_rate:g} Hz; expected {TICKS_PER_SECOND / config.source_rate:g} Hz, "
            f"from SOURCERATE = {config.source_rate:g}"
        )


make_plan = functools.lru_cache(maxsize=32)(Plan.make)


def check_samples(samples: npt.ArrayLike, spectrum: Spectrum) -> Float32Array:
    """Return the samples as contiguous float32.

    Raises ShapeError if they are not one channel or shorter than a window.
    """
    samples = np.ascontiguousarray(samples, np.float32)
    if samples.ndim != 1:
        raise ShapeError(f"samples: shape {samples.shape}; expected one channel, shape (N,)")
    spectrum.check_length(len(samples))
    return samples


def add_dither(samples: Float32Array, level: float, seed: int) -> Float32Array:
    """Add uniform noise within +-|level|, which differs between utterances unless level < 0."""
    key = [seed] if level < 0 else [seed, zlib.crc32(samples.tobytes())]
    noise = np.random.default_rng(key).uniform(-abs(level), abs(level), len(samples))
    return samples + noise.astype(np.float32)


def add_dynamics(static: Float32Array, config: FeatureConfig) -> Float32Array:
    """Return the feature matrix for the static features: append deltas of each order, then apply _Z and _N."""
    windows = (("D", config.delta_window), ("A", config.acceleration_window), ("T", config.third_window))
    half_widths = [half_width for qualifier, half_width in windows if config.has(qualifier)]
    # HTK repeats the first and last differences beyond the edges, Sphinx the static features.
    margin = sum(half_widths) if config.sphinx else 0
    blocks = [np.pad(static, ((0, 0), (margin, margin)), mode="edge") if margin else static]
    for half_width in half_widths:
        blocks.append(deltas(blocks[-1], half_width, config.simple_differences))
    if margin:
        blocks = [static, *(block[:, margin:-margin] for block in blocks[1:])]
    if config.speech_mean:
        from features.tracking.speech_mean import SpeechMean  # loads numba, which other features do not need

        SpeechMean.of(config).subtract(static)
    elif config.has("Z"):
        subtract_mean(static[: config.num_centred])
    if config.has("N"):
        blocks[0] = static[:-1]
    if len(blocks) == 1:
        return np.asfortranarray(static)
    features = np.empty((config.dim, static.shape[1]), np.float32, order="F")
    row = 0
    for block in blocks:
        features[row : row + len(block)] = block
        row += len(block)
    return features
