"""Features of audio that is still arriving, identical to those of `extract`, frame by frame.

With SPEECHMEAN, _Z subtracts the same in a stream as in a file.  Other normalisations over the whole utterance are not
possible in a stream: without SPEECHMEAN, _Z subtracts a running mean (RunningMean), and ENORMALISE and noise that
depends on all samples (ADDDITHER > 0) are rejected.
"""

from dataclasses import dataclass, replace

import numpy as np

from features.config import FeatureConfig
from features.extraction import Carried, add_dynamics, frame_period, make_plan
from readers.errors import ConfigError, ShapeError

PIECE = 1 << 17  # samples per step, some seconds; limits the memory of intermediate results


@dataclass(frozen=True)
class RunningMean:
    """The running mean that _Z subtracts in a stream.

    From frame t, the mean of the last `memory` frames up to t is subtracted, or of the first `start` frames if t is one
    of these.  Thus the first `start` frames are delivered together, when all of them are available or at the end.

    Parameters
    ----------
    start : int or None
        Frames; None for the whole utterance, as in HTK.
    memory : int
        Frames, at least start.

    Raises
    ------
    ConfigError
        For values out of range.
    """

    start: int | None = 100
    memory: int = 600

    def __post_init__(self) -> None:
        if self.start is not None and not 1 <= self.start <= self.memory:
            raise ConfigError(f"running mean: start {self.start}, memory {self.memory}; expected 1 <= start <= memory")


class FeatureStream:
    """Features of one long utterance: call `push` with samples as they arrive, then `finish`.

    The frames do not depend on the division of the samples.

    Parameters
    ----------
    config : FeatureConfig
    sample_rate : float
        In Hz.
    mean : RunningMean, optional
        For _Z without SPEECHMEAN.

    Attributes
    ----------
    period : int
        Frame period in 100 ns units.
    delay : int
        Number of frames by which output lags behind the samples, because of the look-ahead of deltas.

    Raises
    ------
    ConfigError
        For options that need the whole utterance, or do not match the sample rate.
    """

    def __init__(self, config: FeatureConfig, sample_rate: float, mean: RunningMean | None = None):
        if config.has("E") and config.normalise_energy:
            raise ConfigError(
                "ENORMALISE = T needs the loudest frame of the whole utterance; expected F for a stream "
                "(and a network that was trained with it)"
            )
        if config.toolkit:
            raise ConfigError(
                f"TOOLKIT = {config.toolkit} has features of whole utterances; expected others for a stream"
            )
        if config.dither > 0:
            raise ConfigError(
                f"ADDDITHER = {config.dither:g} is noise that depends on all samples; expected 0 or a negative value "
                "for a stream"
            )
        self.config = config
        self.sample_rate = sample_rate
        self.period = frame_period(config, sample_rate)
        self._plan = make_plan(config, float(sample_rate))
        self._spectrum = self._plan.spectrum
        self._carried = Carried()
        if config.sphinx and self._spectrum.hop > len(self._spectrum.window):
            raise ConfigError(
                f"SPHINX = T with TARGETRATE = {config.target_rate:g}; expected at most WINDOWSIZE for a stream"
            )
        self._noise = np.random.default_rng([config.seed]) if config.dither else None
        self._samples = np.zeros(0, np.float32)  # begins with the first sample of the next frame
        # Samples to come before the next frame, if frames do not overlap and leave gaps.
        self._unused = max(0, -self._spectrum.lead)
        # With SNIPEDGES = F: the samples so far, up to a window; the latest window.
        self._beginning: np.ndarray | None = self._samples if self._spectrum.is_mirrored else None
        self._latest = self._samples
        self._dynamics = _Dynamics(config)
        self._mean: _SpeechMean | _Mean | None = None
        if config.speech_mean:
            self._mean = _SpeechMean(config)
        elif config.has("Z"):
            self._mean = _Mean(config, mean or RunningMean())
        self._num_samples = 0

    @property
    def delay(self) -> int:
        """Number of frames by which the output lags behind the samples."""
        return self._dynamics.reach

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Return the frames (dim, n), float32 in Fortran order, n >= 0, that these samples complete.

        samples: (N,) on the scale of 16-bit integers, any real dtype.  Raises ShapeError unless they are one channel
        and finite.
        """
        samples = np.asarray(samples, np.float32)
        if samples.ndim != 1:
            raise ShapeError(f"samples: shape {samples.shape}; expected one channel, shape (N,)")
        pieces = [self._frames(samples[i : i + PIECE]) for i in range(0, len(samples), PIECE)]
        return pieces[0] if len(pieces) == 1 else _side_by_side(self.config.dim, pieces)

    def finish(self) -> np.ndarray:
        """Return the last frames (dim, n).  Raises ShapeError if the audio was shorter than a window."""
        self._spectrum.check_length(self._num_samples)
        last = self._last_frames() if self._spectrum.is_mirrored else np.zeros((self.config.dim, 0), np.float32)
        frames = self._dynamics.finish()
        if self._mean is None:
            return _side_by_side(self.config.dim, [last, frames])
        return _side_by_side(self.config.dim, [last, self._mean.push(frames), self._mean.finish()])

    def _last_frames(self) -> np.ndarray:
        """Return the frames that reach beyond the end, with SNIPEDGES = F."""
        spectrum = self._spectrum
        if self._beginning is not None:  # the utterance is no longer than a window
            samples = spectrum.with_edges(self._beginning)
            self._beginning = None
            return self._of_whole_windows(samples)
        after = spectrum.num_after(self._num_samples)
        return self._of_whole_windows(self._latest[::-1][:after] if after > 0 else self._latest[:0])

    def _frames(self, samples: np.ndarray) -> np.ndarray:
        self._num_samples += len(samples)
        if self._noise is not None:
            level = abs(self.config.dither)
            samples = samples + self._noise.uniform(-level, level, len(samples)).astype(np.float32)
        if self._spectrum.is_mirrored:
            self._latest = np.concatenate([self._latest, samples])[-len(self._spectrum.window) :]
            if self._beginning is not None:
                samples = np.concatenate([self._beginning, samples])
                if len(samples) <= len(self._spectrum.window):
                    self._beginning = samples
                    return np.zeros((self.config.dim, 0), np.float32, order="F")
                self._beginning = None
                samples = np.pad(samples, (max(self._spectrum.lead, 0), 0), mode="symmetric")
        return self._of_whole_windows(samples)

    def _of_whole_windows(self, samples: np.ndarray) -> np.ndarray:
        """Return the frames that these samples complete."""
        unused = self._unused
        self._unused = max(0, self._unused - len(samples))
        samples = np.concatenate([self._samples, samples[unused:]])
        num_frames = self._spectrum.num_windows(len(samples))
        if not num_frames:
            self._samples = samples
            return np.zeros((self.config.dim, 0), np.float32, order="F")
        used = num_frames * self._spectrum.hop
        self._samples = samples[used:].copy()
        self._unused = max(0, used - len(samples))
        # Pre-emphasis crosses the beginning of a frame with SPHINX = T only; the samples may begin at any frame.
        frames = self._dynamics.push(self._plan.static_features(samples, self._carried))
        if self.config.sphinx:
            self._carried.sample = float(samples[used - 1])
        return frames if self._mean is None else self._mean.push(frames)


class _Dynamics:
    """Deltas of each order; a frame is delivered when the frames after it that its deltas need are available."""

    def __init__(self, config: FeatureConfig):
        kind = "_".join(part for part in config.target_kind.split("_") if part != "Z")
        self.config = replace(config, target_kind=kind, speech_mean=())
        windows = (("D", config.delta_window), ("A", config.acceleration_window), ("T", config.third_window))
        self.reach = sum(half_width for qualifier, half_width in windows if config.has(qualifier))
        self.static = np.zeros((config.num_static, 0), np.float32, order="F")
        self.done = 0  # number of stored frames that were delivered

    def push(self, static: np.ndarray) -> np.ndarray:
        self.static = np.concatenate([self.static, static], axis=1)
        return self._until(self.static.shape[1] - self.reach)

    def finish(self) -> np.ndarray:
        return self._until(self.static.shape[1])

    def _until(self, stop: int) -> np.ndarray:
        """Return the features of frames done .. stop-1.

        Frames are repeated at the edges of the stored frames, which is correct at the ends of the utterance; elsewhere
        `reach` more frames are stored on either side.
        """
        if stop <= self.done:
            return np.zeros((self.config.dim, 0), np.float32, order="F")
        frames = add_dynamics(np.asfortranarray(self.static), self.config)[:, self.done : stop].copy(order="F")
        forgotten = max(0, stop - self.reach)
        self.static = self.static[:, forgotten:]
        self.done = stop - forgotten
        return frames


class _SpeechMean:
    """Subtracts the mean of speech for _Z."""

    def __init__(self, config: FeatureConfig):
        from features.tracking.speech_mean import SpeechMean  # loads numba, which other features do not need

        self._mean = SpeechMean.of(config)
        self._dim = config.dim
        self._rows = config.num_static - config.has("N")

    def push(self, frames: np.ndarray) -> np.ndarray:
        """Return frames (dim, n), which follow the earlier ones, without their means."""
        self._mean.subtract(frames[: self._rows])
        return frames

    def finish(self) -> np.ndarray:
        return np.zeros((self._dim, 0), np.float32)


class _Mean:
    """Subtracts the running mean for _Z."""

    def __init__(self, config: FeatureConfig, options: RunningMean):
        self.options = options
        self.dim = config.dim
        self.rows = config.num_centred
        self.waiting: list[np.ndarray] = []  # frames before the first mean is known
        self.num_waiting = 0
        self.sums: np.ndarray | None = None  # (rows, n) f8: cumulative sums before each of the last n frames

    def push(self, frames: np.ndarray) -> np.ndarray:
        """Add frames (dim, n); return those that can be delivered."""
        if self.sums is not None:
            return self._running(frames)
        self.waiting.append(frames)
        self.num_waiting += frames.shape[1]
        start = self.options.start
        return frames[:, :0] if start is None or self.num_waiting < start else self._begin(start)

    def finish(self) -> np.ndarray:
        if self.sums is None and self.num_waiting:
            return self._begin(self.num_waiting)
        return np.zeros((self.dim, 0), np.float32, order="F")

    def _begin(self, start: int) -> np.ndarray:
        frames = _side_by_side(self.dim, self.waiting)
        self.waiting = []
        static = frames[: self.rows]
        self.sums = np.zeros((self.rows, 1))
        first = frames[:, :start].copy(order="F")
        first[: self.rows] -= static[:, :start].mean(axis=1, dtype=np.float64, keepdims=True).astype(np.float32)
        self._remember(static[:, :start])
        return _side_by_side(self.dim, [first, self._running(frames[:, start:])])

    def _running(self, frames: np.ndarray) -> np.ndarray:
        frames = frames.copy(order="F")
        if not frames.shape[1]:
            return frames
        before = self._remember(frames[: self.rows])
        assert self.sums is not None
        ends = np.arange(before, self.sums.shape[1])
        begins = np.maximum(ends - self.options.memory, 0)
        means = (self.sums[:, ends] - self.sums[:, begins]) / (ends - begins)
        frames[: self.rows] -= means.astype(np.float32)
        self.sums = self.sums[:, -self.options.memory - 1 :]
        return frames

    def _remember(self, static: np.ndarray) -> int:
        """Append the cumulative sums of these frames; return how many sums there were."""
        assert self.sums is not None
        before = self.sums.shape[1]
        more = self.sums[:, -1:] + np.cumsum(static, axis=1, dtype=np.float64)
        self.sums = np.concatenate([self.sums, more], axis=1)
        return before


def _side_by_side(dim: int, pieces: list[np.ndarray]) -> np.ndarray:
    """Return the pieces joined to (dim, n) in Fortran order; there may be none."""
    return np.asfortranarray(np.concatenate([np.zeros((dim, 0), np.float32), *pieces], axis=1))
