"""Filterbank outputs from samples: frames, pre-emphasis, window, spectrum, filters, for many frames at once."""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from features.config import FeatureConfig
from features.filterbank import filter_weights, slaney_filter_weights, sphinx_filter_weights
from readers.common.arrays import Float32Array, Float64Array
from readers.errors import ConfigError, ShapeError
from readers.htk.units import TICKS_PER_SECOND

# The windowed frames and spectra of one pass (512 KB) fit into the second-level cache.  64, 128 and 256 frames are
# equally fast within 10 % noise.
FRAMES_PER_PASS = 128
FULL_SCALE = 32768.0  # of samples from -1 to 1, which TOOLKIT and WAVEFORM expect
MAX_WINDOW = 1 << 16  # samples, more than a second of any audio; protects the memory from a damaged sample rate


@dataclass(frozen=True)
class Spectrum:
    """Everything about frames and filters that depends only on the options and the sample rate.

    window: (length,) float32; hop: in samples.
    weights: (2 * num_bins, num_channels) float32 for power, with weights of the squares of real and imaginary part side
    by side; else (num_bins, num_channels).
    """

    window: Float32Array
    hop: int
    fft_length: int
    weights: Float32Array
    preemphasis: float
    use_power: bool
    zero_mean: bool
    energy: str  # "", "raw" or "windowed"
    emphasis_goes_on: bool  # whether the first sample of a frame loses its share of the one before the frame
    beyond: Literal["", "reflect", "constant"] = ""  # how samples go on beyond the ends, for windows centred at hops
    is_mirrored: bool = False  # whether samples beyond the ends are those before them, see `with_edges`

    @classmethod
    def make(cls, config: FeatureConfig, sample_rate: float) -> Self:
        if config.base_kind == "WAVEFORM":
            one = np.ones((1, 1), np.float32)
            return cls(one[0], 1, 1, one, 0.0, use_power=False, zero_mean=False, energy="", emphasis_goes_on=False)
        length, hop = window_samples(config, sample_rate)
        fft_length = 1 << (length - 1).bit_length() + config.double_fft
        if config.toolkit:
            return cls._centred(config, sample_rate, length, hop, fft_length)
        make_weights = sphinx_filter_weights if config.sphinx else filter_weights
        weights = make_weights(config, sample_rate, fft_length)
        if config.use_power:
            weights = np.repeat(weights, 2, axis=0)
        energy = "" if not config.has("E") else "raw" if config.raw_energy else "windowed"
        return cls(
            window=window_weights(config, length).astype(np.float32),
            hop=hop,
            fft_length=fft_length,
            weights=np.ascontiguousarray(weights, np.float32),
            preemphasis=config.preemphasis,
            use_power=config.use_power,
            zero_mean=config.zero_mean_source,
            energy=energy,
            emphasis_goes_on=config.sphinx,
            is_mirrored=not config.snip_edges,
        )

    @classmethod
    def _centred(cls, config: FeatureConfig, sample_rate: float, length: int, hop: int, fft_length: int) -> Self:
        """Return that of TOOLKIT: windows as long as the FFT, centred at multiples of the hop."""
        is_whisper = config.toolkit == "WHISPER"
        fft_length = length if is_whisper else fft_length
        window = np.zeros(fft_length, np.float32)
        begin = (fft_length - length) // 2
        window[begin : begin + length] = np.hanning(length + is_whisper)[:length]  # Whisper's is periodic
        weights = slaney_filter_weights(config, sample_rate, fft_length) / FULL_SCALE**2
        return cls(
            window=window,
            hop=hop,
            fft_length=fft_length,
            weights=np.ascontiguousarray(np.repeat(weights, 2, axis=0), np.float32),
            preemphasis=config.preemphasis,
            use_power=True,
            zero_mean=False,
            energy="",
            emphasis_goes_on=True,
            beyond="reflect" if is_whisper else "constant",
        )

    def num_frames(self, num_samples: int) -> int:
        """Return the number of frames of an utterance: whole windows or, if they are centred, hops."""
        if self.beyond:
            return num_samples // self.hop if num_samples >= len(self.window) else 0
        if self.is_mirrored:
            return (num_samples + self.hop // 2) // self.hop
        return self.num_windows(num_samples)

    def num_windows(self, num_samples: int) -> int:
        """Return the number of windows within samples."""
        return max(0, (num_samples - len(self.window)) // self.hop + 1)

    def check_length(self, num_samples: int) -> None:
        """Raise ShapeError if an utterance is too short for a frame."""
        if not self.num_frames(num_samples):
            least, what = len(self.window), "one window"
            if self.is_mirrored:
                least, what = self.hop - self.hop // 2, "half of a frame"
            raise ShapeError(f"{num_samples} samples; expected at least {least}, {what}")

    @property
    def lead(self) -> int:
        """Samples of the first frame before the beginning of the utterance; below 0, those left out."""
        return len(self.window) // 2 - self.hop // 2 if self.is_mirrored else 0

    def num_after(self, num_samples: int) -> int:
        """Return how many samples of the last frame are beyond the end of an utterance."""
        return (self.num_frames(num_samples) - 1) * self.hop + len(self.window) - self.lead - num_samples

    def with_edges(self, samples: Float32Array) -> Float32Array:
        """Return the samples of all frames: with SNIPEDGES = F, mirrored beyond the ends; else these.

        Source: ExtractWindow in feature-window.cc of Kaldi.
        """
        if not self.is_mirrored:
            return samples
        after = self.num_after(len(samples))
        mirrored = np.pad(samples, (max(self.lead, 0), max(after, 0)), mode="symmetric")
        return mirrored[max(-self.lead, 0) : len(mirrored) - max(-after, 0)]

    def filterbank(self, samples: Float32Array, before: float = 0.0) -> tuple[Float32Array, Float32Array | None]:
        """Return filter outputs (num_channels, T) float32 in Fortran order, before floor and log, and frame energies.

        samples: (N,) float32 on the scale of 16-bit integers, with edges, at least one window; before: the one before
        them.
        Energies are (T,) float32, the sum of squares of each frame, or None if the target has no energy.
        """
        num_frames = self.num_frames(len(samples)) if self.beyond else self.num_windows(len(samples))
        outputs = np.empty((num_frames, self.weights.shape[1]), np.float32)
        energies = np.empty(num_frames if self.energy else 0, np.float32)
        emphasised = self.emphasise(samples, before)
        if self.beyond:
            emphasised = np.pad(emphasised, self.fft_length // 2, mode=self.beyond)
        buffer = np.zeros((min(num_frames, FRAMES_PER_PASS), self.fft_length), np.float32)
        spectra = np.empty((len(buffer), self.fft_length // 2 + 1), np.complex64)
        for start in range(0, num_frames, FRAMES_PER_PASS):
            stop = min(start + FRAMES_PER_PASS, num_frames)
            windowed = self.window_frames(samples, emphasised, start, buffer[: stop - start])
            if self.energy == "raw":
                energies[start:stop] = self.raw_energies(samples, start, stop - start)
            elif self.energy == "windowed":
                energies[start:stop] = np.einsum("tn,tn->t", windowed, windowed)
            np.fft.rfft(buffer[: stop - start], out=spectra[: stop - start])  # type: ignore[arg-type]  # single, too
            parts = spectra[: stop - start].view(np.float32)
            np.multiply(parts, parts, out=parts)
            if not self.use_power:
                parts = np.sqrt(parts[:, ::2] + parts[:, 1::2])
            np.matmul(parts, self.weights, out=outputs[start:stop])
        return outputs.T, energies if self.energy else None

    def frames(self, samples: Float32Array, start: int, count: int) -> Float32Array:
        """Return the frames start..start + count - 1 as a view (count, length) of the samples."""
        step = samples.strides[0]
        first = samples[start * self.hop :]
        return np.lib.stride_tricks.as_strided(
            first, (count, len(self.window)), (self.hop * step, step), writeable=False
        )

    def emphasise(self, samples: Float32Array, before: float = 0.0) -> Float32Array:
        """Return s[n] - k s[n-1] over the whole utterance; window_frames corrects the first sample of each frame."""
        emphasised = samples.copy()
        if self.preemphasis:
            emphasised[0] -= np.float32(self.preemphasis * before)
            emphasised[1:] -= np.float32(self.preemphasis) * samples[:-1]
        return emphasised

    def window_frames(
        self, samples: Float32Array, emphasised: Float32Array, start: int, buffer: Float32Array
    ) -> Float32Array:
        """Fill buffer (count, fft_length) with frames after mean removal, pre-emphasis and window; the padding stays 0.

        HTK processes each frame separately: y[n] = s[n] - k s[n-1], y[0] = (1 - k) s[0].  This is linear, so the mean m
        of a frame can be removed afterwards, as (1 - k) m w[n].
        """
        count = len(buffer)
        length = len(self.window)
        windowed = buffer[:, :length]
        np.multiply(self.frames(emphasised, start, count), self.window, out=windowed)
        if self.emphasis_goes_on:
            return windowed
        scale = np.float32(1.0 - self.preemphasis)
        first = samples[start * self.hop :: self.hop][:count]
        windowed[:, 0] = scale * self.window[0] * first
        if self.zero_mean:
            means = self.frames(samples, start, count).mean(axis=1)
            windowed -= np.outer(scale * means, self.window)
        return windowed

    def raw_energies(self, samples: Float32Array, start: int, count: int) -> Float32Array:
        """Return the sums of squares (count,) before pre-emphasis and window, after mean removal if requested."""
        frames = self.frames(samples, start, count)
        if self.zero_mean:
            frames = frames - frames.mean(axis=1, keepdims=True)
        return np.einsum("tn,tn->t", frames, frames)


def window_samples(config: FeatureConfig, sample_rate: float) -> tuple[int, int]:
    """Return (window, hop) in samples.  HTK truncates; the small constant keeps 399.99999 from becoming 399."""
    length = int(config.window_size * sample_rate / TICKS_PER_SECOND + 1e-6)
    hop = int(config.target_rate * sample_rate / TICKS_PER_SECOND + 1e-6)
    for setting, ticks, samples, least in (
        ("WINDOWSIZE", config.window_size, length, 4),
        ("TARGETRATE", config.target_rate, hop, 1),
    ):
        if samples < least:
            raise ConfigError(
                f"{setting} = {ticks:g}: {samples} samples at {sample_rate:g} Hz; expected at least {least} "
                "(the unit is 100 ns)"
            )
    if length > MAX_WINDOW:
        raise ConfigError(
            f"WINDOWSIZE = {config.window_size:g}: {length} samples at {sample_rate:g} Hz; expected at most "
            f"{MAX_WINDOW}"
        )
    return length, hop


def window_weights(config: FeatureConfig, length: int) -> Float64Array:
    """Return the window (length,) float64; that of Kaldi is a Hann window to the power of 0.85."""
    if config.kaldi:
        return np.hanning(length) ** 0.85
    return np.hamming(length) if config.use_hamming else np.ones(length)
