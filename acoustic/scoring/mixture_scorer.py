"""Gaussian mixtures whose densities are shared by many classes, in place of a network.

Densities lie in codebooks, one for each stream of the features; the classes of a codebook have weights of their own.
Of a codebook, only the best densities of a frame count, and none is further below the best of all codebooks than a
limit, as in CMU Sphinx.  Source: D. Huggins-Daines et al., PocketSphinx, ICASSP 2006.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acoustic.scoring.window_scorer import GAUSSIAN_SCALE, STEP, WindowScorer
from readers.common.arrays import Float32Array, Float64Array, Int32Array, Int64Array
from readers.common.file_part import FilePart
from readers.common.kernels import njit
from readers.config.feature_record import FeatureRecord
from readers.errors import ModelError
from readers.tables.tensor_file import METADATA_KEY, load_tensors, read_header, save_tensors

FORMAT = "argonaut-mixtures"
VERSION = 2


def is_mixture_model(path: str | Path | FilePart) -> bool:
    """Return whether a file has a MixtureModel; damaged ones are none."""
    try:
        return FORMAT in read_header(path)[1].get(METADATA_KEY, "")[:200]
    except ModelError:
        return False


@dataclass(frozen=True, eq=False)
class MixtureStream:
    """The densities of C codebooks, D in each, of some rows of the features, and their weights in K classes.

    The logarithm of a density is norm - sum of precision (x - mean)^2.  Norms are parameters of their own, as Sphinx
    rounds precisions and not the variances in the norm.

    Attributes
    ----------
    rows : (w,) int32
        Rows of the features.
    means, precisions : (C, w, D) float32
        Precisions are 1 / (2 variance).
    norms : (C, D) float32
    weights : (D, K) float32
        Columns in the order of `MixtureModel.order`.
    """

    rows: Int32Array
    means: Float32Array
    precisions: Float32Array
    norms: Float32Array
    weights: Float32Array


@dataclass(frozen=True, eq=False)
class MixtureModel:
    """K classes, each a product over streams of mixtures of the densities of one codebook.

    Attributes
    ----------
    codebooks : (K,) int32
        Codebook of each class.
    streams : sequence of MixtureStream
    record : FeatureRecord
        How the features are computed.
    dim : int
        Rows of the features.
    best : int
        Densities of a codebook that count in a frame.
    limit : float
        How far below the best density of all codebooks, in ln, a density can be; inf for none.
    """

    codebooks: Int32Array
    streams: Sequence[MixtureStream]
    record: FeatureRecord
    dim: int
    best: int
    limit: float

    @property
    def order(self) -> Int64Array:
        """The classes, those of a codebook side by side."""
        return np.argsort(self.codebooks, kind="stable")

    def save(self, path: str | Path) -> None:
        """Write a file that `load` reads."""
        tensors: dict[str, np.ndarray] = {"codebooks": self.codebooks}
        for number, stream in enumerate(self.streams):
            tensors |= {f"{name}.{number}": getattr(stream, name) for name in MixtureStream.__dataclass_fields__}
        about = {"dim": self.dim, "best": self.best, "limit": self.limit if self.limit < math.inf else None}
        metadata = {"format": FORMAT, "version": VERSION, "features": self.record.as_json(), **about}
        save_tensors(path, tensors, metadata)

    @classmethod
    def load(cls, path: str | Path | FilePart) -> "MixtureModel":
        """Read a file of `save`.  Raises ModelError and FormatError for a damaged one, OSError for a missing one."""
        tensors, metadata = load_tensors(path)
        if metadata.get("format") != FORMAT or metadata.get("version") != VERSION:
            raise ModelError(
                f"{path}: format {str(metadata.get('format'))[:40]!r}; expected {FORMAT!r}, version {VERSION}"
            )
        record = FeatureRecord.parse(metadata.get("features"), f"{path}")
        names = tuple(MixtureStream.__dataclass_fields__)
        num_streams = (len(tensors) - 1) // len(names)
        expected = {"codebooks", *(f"{name}.{number}" for name in names for number in range(num_streams))}
        dim, best, limit = (metadata.get(name) for name in ("dim", "best", "limit"))
        if tensors.keys() != expected or not num_streams or type(dim) is not int or type(best) is not int:
            raise ModelError(
                f"{path}: tensors {', '.join(sorted(tensors))[:80]}; expected codebooks and those of streams"
            )
        streams = [MixtureStream(*(tensors[f"{name}.{number}"] for name in names)) for number in range(num_streams)]
        model = cls(tensors["codebooks"], streams, record, dim, best, math.inf if limit is None else float(limit))
        model.check(f"{path}")
        return model

    def check(self, where: str) -> None:
        """Raise ModelError unless all sizes fit, and all numbers are in range."""
        size = self.streams[0].norms.shape
        sound = self.codebooks.dtype == np.int32 and self.codebooks.ndim == 1 and len(self.codebooks) > 0
        sound = sound and len(size) == 2 and 0 <= self.codebooks.min() <= self.codebooks.max() < size[0]
        sound = sound and 1 <= self.best <= size[1] and self.limit > 0
        for stream in self.streams:
            shape = (size[0], len(stream.rows), size[-1])
            sound = sound and stream.rows.dtype == np.int32 and stream.rows.ndim == 1 and len(stream.rows) > 0
            sound = sound and 0 <= stream.rows.min() <= stream.rows.max() < self.dim
            sound = sound and stream.means.shape == stream.precisions.shape == shape and stream.norms.shape == size
            sound = sound and stream.weights.shape == (size[1], len(self.codebooks))
            for values in (stream.means, stream.precisions, stream.norms, stream.weights) if sound else ():
                sound = sound and values.dtype == np.float32 and bool(np.isfinite(values).all())
            sound = sound and bool(stream.precisions.min() >= 0) and bool(stream.weights.min() > 0)
        if not sound:
            raise ModelError(f"{where}: sizes or values of its tensors do not fit together; expected a complete model")


class MixtureScorer(WindowScorer):
    """Scores frames by a MixtureModel: ln p(frame | class).

    Parameters
    ----------
    model : MixtureModel
    source : str
        The name of the model in messages.
    """

    def __init__(self, model: MixtureModel, source: str = "Gaussian mixtures"):
        self.source = source
        self.record = model.record
        self.window = 1
        self.dim = model.dim
        self.num_outputs = len(model.codebooks)
        self._order = model.order
        self._ends = np.searchsorted(model.codebooks[self._order], np.arange(len(model.streams[0].norms) + 1))
        self._best = model.best
        self._limit = model.limit
        self._streams = model.streams

    @property
    def posterior_scale(self) -> float:
        """Posteriors of Gaussians are too sure."""
        return GAUSSIAN_SCALE

    def score_windows(self, stacked: np.ndarray, step: int = STEP) -> np.ndarray:
        """Return scores (num_outputs, T), float32 in Fortran order, for frames (T, dim)."""
        logs = np.zeros((len(stacked), self.num_outputs))
        products = np.ones((len(stacked), self.num_outputs))
        for stream in self._streams:
            frames = np.ascontiguousarray(stacked[:, stream.rows], np.float32)
            mixture_stream(
                frames, stream.means, stream.precisions, stream.norms, stream.weights, self._ends, self._best,
                self._limit, logs, products,
            )  # fmt: skip
        scores = np.empty((self.num_outputs, len(stacked)), np.float32, order="F")
        scores.T[:, self._order] = logs + np.log(products)
        return scores


@njit(cache=True, nogil=True, fastmath=True)
def mixture_stream(
    frames: Float32Array,
    means: Float32Array,
    precision: Float32Array,
    norm: Float32Array,
    weights: Float32Array,
    ends: Int64Array,
    best: int,
    limit: float,
    logs: Float64Array,
    products: Float64Array,
) -> None:
    """Add the logarithm of a stream's scores to logs + ln(products), (T, K), classes of a codebook side by side.

    frames (T, w); means and precision (C, w, D), the latter 1 / (2 variance); norm (C, D): ln of the factors of the
    densities; weights (D, K); ends (C + 1,): the classes of codebook c are ends[c] .. ends[c + 1] - 1; best: densities
    that count; limit: see MixtureModel.

    The weights are summed outside of the logarithm, and the products of streams stay in range because the best density
    of a codebook has the factor 1: one logarithm for each class and frame.
    """
    num_codebooks, width, num_densities = means.shape
    value = np.empty(num_densities, np.float32)
    top = np.empty((num_codebooks, best), np.float32)
    place = np.empty((num_codebooks, best), np.int64)
    total = np.empty(weights.shape[1], np.float32)
    for t in range(frames.shape[0]):
        highest = np.float32(-np.inf)
        for c in range(num_codebooks):
            value[:] = norm[c]
            for i in range(width):
                x = frames[t, i]
                mean = means[c, i]
                factor = precision[c, i]
                for d in range(num_densities):
                    difference = x - mean[d]
                    value[d] -= difference * difference * factor[d]
            count = 0
            for d in range(num_densities):
                if count == best and value[d] <= top[c, best - 1]:
                    continue
                at = min(count, best - 1)
                while at > 0 and top[c, at - 1] < value[d]:
                    top[c, at] = top[c, at - 1]
                    place[c, at] = place[c, at - 1]
                    at -= 1
                top[c, at] = value[d]
                place[c, at] = d
                count = min(count + 1, best)
            highest = max(highest, top[c, 0])
        for c in range(num_codebooks):
            begin, end = ends[c], ends[c + 1]
            if begin == end:
                continue
            first = max(top[c, 0], highest - limit)
            total[begin:end] = 0.0
            for n in range(best):
                share = np.float32(math.exp(max(top[c, n], highest - limit) - first))
                row = weights[place[c, n]]
                for k in range(begin, end):
                    total[k] += share * row[k]
            for k in range(begin, end):
                logs[t, k] += first
                products[t, k] *= total[k]
