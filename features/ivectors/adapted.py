"""Features with i-vectors: each frame of a network's features with the values of its i-vector below them."""

import numpy as np

from features.config import FeatureConfig
from features.extraction import extract, frame_period
from features.ivectors.model import IvectorModel
from features.streaming import FeatureStream, RunningMean
from readers.config.feature_record import FeatureRecord
from readers.config.side_files import SideFiles
from readers.errors import ConfigError, FormatError
from readers.htk.parameter_file import read_htk
from readers.htk.scp import ScpEntry, read_scp


class AdaptedFeatures:
    """Computes features and online i-vectors from audio.

    Parameters
    ----------
    config : FeatureConfig
        The features of the network.
    model : IvectorModel

    Raises
    ------
    ConfigError
        For a model that does not know how its features are computed.
    """

    def __init__(self, config: FeatureConfig, model: IvectorModel):
        self.config = config
        self.model = model
        self.ivector_config = model.feature_config()

    def check_rate(self, rate: float) -> None:
        """Raise ConfigError if the frames of both features do not begin at the same times in audio of this rate."""
        periods = [frame_period(config, rate) for config in (self.config, self.ivector_config)]
        if periods[0] != periods[1]:
            raise ConfigError(
                f"{self.model.source}: a frame every {periods[1] / 10_000:g} ms; expected {periods[0] / 10_000:g} ms, "
                "as of the network's features"
            )

    def extract(self, samples: np.ndarray, rate: float) -> np.ndarray:
        """Return the features with i-vectors (dim + D, T) float32 of samples (N,) on the scale of 16-bit integers."""
        self.check_rate(rate)
        vectors = self.model.online(extract(samples, self.ivector_config, rate))
        return with_vectors(extract(samples, self.config, rate), vectors, self.model.options.period)

    def stream(self, rate: float, mean: RunningMean | None = None) -> "AdaptedStream":
        """Begin a stream of samples; mean: for features with _Z, see FeatureStream."""
        self.check_rate(rate)
        return AdaptedStream(self, rate, mean)


class AdaptedStream:
    """Features with i-vectors while samples arrive: call `push`, and `finish` at the end, as of FeatureStream."""

    def __init__(self, features: AdaptedFeatures, rate: float, mean: RunningMean | None):
        self._model = features.model
        self._features = FeatureStream(features.config, rate, mean)
        self._others = FeatureStream(features.ivector_config, rate, mean)
        self._ivectors = features.model.stream()
        self._frames = np.zeros((features.config.dim, 0), np.float32)  # those that were not delivered yet
        self._vectors = np.zeros((features.model.dim, 0), np.float32)  # from the block of the first of them on
        self._offset = 0  # of the first of them in its block

    @property
    def delay(self) -> int:
        """Number of frames by which the output lags behind the samples, at most."""
        return max(self._features.delay, self._others.delay + self._ivectors.delay)

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Return the frames (dim + D, n) float32 that these samples (N,) complete."""
        self._add(self._features.push(samples), self._others.push(samples))
        ready = self._vectors.shape[1] * self._model.options.period - self._offset
        return self._take(max(0, min(self._frames.shape[1], ready)))

    def finish(self) -> np.ndarray:
        """Return the last frames."""
        self._add(self._features.finish(), self._others.finish())
        self._vectors = np.concatenate([self._vectors, self._ivectors.finish()], axis=1)
        if not self._vectors.shape[1]:
            self._vectors = self._ivectors.current()[:, None]
        return self._take(self._frames.shape[1])

    def _add(self, frames: np.ndarray, others: np.ndarray) -> None:
        self._frames = np.concatenate([self._frames, frames], axis=1)
        self._vectors = np.concatenate([self._vectors, self._ivectors.push(others)], axis=1)

    def _take(self, count: int) -> np.ndarray:
        """Return the first frames, and forget them."""
        period = self._model.options.period
        frames = self._frames[:, :count]
        self._frames = self._frames[:, count:]
        if not count:
            return np.zeros((len(frames) + len(self._vectors), 0), np.float32, order="F")
        extended = with_vectors(frames, self._vectors, period, self._offset)
        blocks, self._offset = divmod(self._offset + count, period)
        self._vectors = self._vectors[:, blocks:]
        return extended


class VectorFiles:
    """I-vectors in the HTK files of a list, by the names of utterances.

    Parameters
    ----------
    scp : str
        List as `argonaut ivector extract` writes it.
    dim : int
        Values that a vector must have.
    expected : FeatureRecord
        Of the i-vectors of a network's training, which the files are compared with.
    why : str
        Why, for the end of messages: "with which X was trained".

    Raises
    ------
    FormatError
        For a list without entries, and for repeated names.
    """

    def __init__(self, scp: str, dim: int, expected: FeatureRecord, why: str):
        self.scp = scp
        self.dim = dim
        self._expected = expected
        self._why = why
        self._side_files = SideFiles()
        self._entries: dict[str, ScpEntry] = {}
        for entry in read_scp(scp):
            duplicate = self._entries.setdefault(entry.key, entry)
            if duplicate is not entry:
                raise FormatError(
                    f"{entry.where}: '{entry.key}' is already at {duplicate.where}; expected each name once"
                )
        if not self._entries:
            raise FormatError(f"{scp}: no entries; expected a file of i-vectors on each line")

    def add_to(self, frames: np.ndarray, key: str, period: int) -> np.ndarray:
        """Return the frames (dim, T) of an utterance with its i-vectors below them, (dim + D, T).

        period: of the frames, in 100 ns units.  A file of one vector serves all frames; otherwise its period says for
        how many frames a vector is.  Raises FormatError for missing vectors and those that do not fit.
        """
        entry = self._entries.get(key)
        if entry is None:
            raise FormatError(f"{self.scp}: no i-vectors of '{key}'; expected a line `{key}=FILE`")
        file = read_htk(entry.path, entry.start or 0, entry.end)
        record = FeatureRecord(extractor=self._side_files.record(entry.path, "USER", file.period).extractor)
        fault = record.mismatch(entry.path, self._expected, self._why)
        if fault:
            raise FormatError(fault)
        size, count = file.frames.shape
        if size != self.dim:
            raise FormatError(f"{entry.path}: vectors of {size} values; expected i-vectors of {self.dim}")
        if not np.isfinite(file.frames).all():
            raise FormatError(f"{entry.path}: a value is infinite or NaN; expected finite values")
        total = frames.shape[1]
        block = total if count == 1 else max(1, round(file.period / period))
        if count > 1 and count != -(-total // block):
            raise FormatError(
                f"{entry.path}: {count} vectors, each for {block} frames; expected {-(-total // block)} for {total} "
                "frames"
            )
        return with_vectors(frames, file.frames, max(block, 1))


def with_vectors(frames: np.ndarray, vectors: np.ndarray, period: int, offset: int = 0) -> np.ndarray:
    """Return frames (dim, T) with vectors (D, n) below them, (dim + D, T) float32 in Fortran order.

    Each vector serves `period` frames; the first frame is number `offset` of the first of them.  The last vector also
    serves the frames beyond it, since features with another window may have a few more frames.
    """
    blocks = np.minimum((offset + np.arange(frames.shape[1])) // period, vectors.shape[1] - 1)
    return np.asfortranarray(np.concatenate([frames, vectors[:, blocks]]), np.float32)
