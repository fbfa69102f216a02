"""Features with i-vectors: each frame of a network's features with the values of its i-vector below them."""

import numpy as np

from features.config import FeatureConfig
from features.extraction import extract, frame_period
from features.ivectors.model import IvectorModel
from features.ivectors.streaming import WeightedStream
from features.streaming import FeatureStream, RunningMean
from readers.config.feature_record import FeatureRecord
from readers.config.side_files import SideFiles
from readers.errors import ConfigError, FormatError
from readers.htk.parameter_file import read_htk
from readers.htk.scp import ScpEntry, read_scp

SETTLED = 100  # columns of a search after which the weights of their frames do not change any more


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

    def chunk_stream(self, rate: float, mean: RunningMean | None = None) -> "ChunkStream":
        """Begin a stream of samples whose i-vectors follow a search, for a model with a ChunkSchedule."""
        self.check_rate(rate)
        return ChunkStream(self, rate, mean)


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


class ChunkStream:
    """Features with i-vectors that follow a search, while samples arrive, as in Kaldi's online recognition.

    Push what `pieces` and in the end `rest` return one by one, with a call of `hear` after each, then `finish`.  When a
    chunk and the frames after it that its scores depend on have arrived, it gets the i-vector of all frames so far.

    Parameters
    ----------
    features : AdaptedFeatures
        Its model has `chunks`.
    rate : float
        Sample rate in Hz.
    mean : RunningMean, optional
        See FeatureStream.
    """

    def __init__(self, features: AdaptedFeatures, rate: float, mean: RunningMean | None = None):
        assert features.model.chunks is not None
        self.chunks = features.model.chunks
        self._features = FeatureStream(features.config, rate, mean)
        self._others = FeatureStream(features.ivector_config, rate, mean)
        self._ivectors = WeightedStream(features.model)
        self._block = round(self.chunks.block * rate)
        self._waiting = np.zeros(0, np.float32)  # samples of an incomplete block
        self._frames = np.zeros((features.config.dim, 0), np.float32)  # those that were not delivered yet
        self._num_delivered = 0
        self._vectors: list[np.ndarray] = []  # of the chunks
        self._weights = np.zeros(0)  # of columns of the search, from `oldest` on
        self._oldest = 0
        self._settled = 0  # columns whose weights do not change any more
        self._silent = np.zeros(0, bool)
        self._first = 0  # column of the first of them

    def pieces(self, samples: np.ndarray) -> list[np.ndarray]:
        """Return the blocks of samples (N,) that further samples complete."""
        self._waiting = np.concatenate([self._waiting, samples])
        count = len(self._waiting) // self._block
        *blocks, self._waiting = np.split(self._waiting, self._block * np.arange(1, count + 1))
        return blocks

    def rest(self) -> np.ndarray:
        """Return the samples that are left at the end."""
        samples = self._waiting
        self._waiting = samples[:0]
        return samples

    def hear(self, silent: np.ndarray, first: int) -> None:
        """Take the result of a search so far: which columns are silence, (n,) bool, from column `first` on."""
        self._settled = max(self._settled, first)
        self._silent = silent
        self._first = first

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Return the frames (dim + D, n) float32 that can be scored with these samples (N,)."""
        self._add(self._features.push(samples), self._others.push(samples))
        chunks = self.chunks
        num_frames = self._num_delivered + self._frames.shape[1]
        num_chunks = max(0, num_frames - chunks.ahead) // chunks.size
        if num_chunks <= len(self._vectors):
            return self._take(0)
        self._estimate(num_chunks)
        return self._take(num_chunks * chunks.size + chunks.ahead - self._num_delivered)

    def finish(self) -> np.ndarray:
        """Return the last frames."""
        self._ivectors.push(self._others.finish())
        self._ivectors.finish()
        self._add(self._features.finish(), np.zeros((self._ivectors.model.num_values, 0), np.float32))
        num_frames = self._num_delivered + self._frames.shape[1]
        self._estimate(-(-num_frames // self.chunks.size))
        return self._take(self._frames.shape[1])

    def _add(self, frames: np.ndarray, others: np.ndarray) -> None:
        self._frames = np.concatenate([self._frames, frames], axis=1)
        self._ivectors.push(others)
        self._weigh(-(-self._ivectors.num_frames // self.chunks.step))

    def _weigh(self, num_columns: int) -> None:
        """Weigh the columns as the search does; those beyond it as its last one, or as silence if it has none."""
        lowest = self.chunks.silence_weight
        settled_weights = self._weights[: self._settled - self._oldest]
        of_search = np.where(self._silent, lowest, 1.0)[self._settled - self._first :]
        missing = max(0, num_columns - self._settled - len(of_search))
        last = lowest
        if of_search.size:
            last = of_search[-1]
        elif self._settled > self._first:
            last = settled_weights[-1]
        self._weights = np.concatenate([settled_weights, of_search, np.full(missing, last)])
        self._settled = max(self._settled, self._oldest + len(self._weights) - SETTLED)

    def _estimate(self, num_chunks: int) -> None:
        """Give the chunks that have no i-vector the one of all frames so far."""
        step = self.chunks.step
        weights = np.repeat(self._weights, step)[: self._ivectors.num_frames - self._oldest * step]
        vector = self._ivectors.estimate(weights)
        self._vectors += [vector] * max(num_chunks - len(self._vectors), 1)
        oldest = max(self._oldest, self._settled - 1)  # a column more, which the next ones may be like
        self._weights = self._weights[oldest - self._oldest :]
        self._oldest = oldest

    def _take(self, count: int) -> np.ndarray:
        """Return the first frames, and forget them."""
        frames = self._frames[:, :count]
        self._frames = self._frames[:, count:]
        numbers = self._num_delivered + np.arange(frames.shape[1])
        self._num_delivered += frames.shape[1]
        if not numbers.size:
            return np.zeros((len(frames) + self._ivectors.model.dim, 0), np.float32, order="F")
        # An i-vector is for a stretch as long as a chunk; the first chunk has those of all frames that it looks at.
        before = -(-self.chunks.ahead // self.chunks.size)
        chunks = np.clip(numbers // self.chunks.size - before, 0, len(self._vectors) - 1)
        vectors = np.stack(self._vectors[chunks[0] :])[chunks - chunks[0]]
        return np.asfortranarray(np.concatenate([frames, vectors.T]), np.float32)


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
