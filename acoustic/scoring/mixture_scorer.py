"""Gaussian mixtures whose densities are shared by many classes, in place of a network.

Densities lie in codebooks, one for each stream of the features; the classes of a codebook have weights of their own.
Of a codebook, only the best densities of a frame count, and none is further below the best of all codebooks than a
limit, as in CMU Sphinx.  Source: D. Huggins-Daines et al., PocketSphinx, ICASSP 2006.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from acoustic.scoring.window_scorer import GAUSSIAN_SCALE, STEP, WindowScorer
from readers.common.arrays import Float32Array, Int32Array, Int64Array
from readers.common.file_part import FilePart
from readers.common.kernels import njit
from readers.config.feature_record import FeatureRecord
from readers.errors import ModelError
from readers.tables.tensor_file import METADATA_KEY, load_tensors, read_header, save_tensors

FORMAT = "argonaut-mixtures"
VERSION = 2
PADDING = np.float32(-1e30)  # norm of what is no density


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
        A codebook of fewer densities has PADDING at its end.
    weights : (D, K) float32
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
        Codebook of each class, ascending.
    streams : sequence of MixtureStream
    record : FeatureRecord
        How the features are computed.
    dim : int
        Rows of the features.
    best : int
        Densities of a codebook that count in a frame.
    limit : float
        How far below the best density of all codebooks, in ln, a density can be; inf for none.
    transform : (v, window * dim) float32, optional
        Makes the v values to which the rows of streams refer from a window of an odd number of frames, one after
        another, such as LDA or differences of frames.  Without it, the values are those of the frame.
    """

    codebooks: Int32Array
    streams: Sequence[MixtureStream]
    record: FeatureRecord
    dim: int
    best: int
    limit: float
    transform: Float32Array | None = None

    @property
    def window(self) -> int:
        """Frames from which the values of a frame are made."""
        return 1 if self.transform is None else self.transform.shape[1] // self.dim

    def of_classes(self, classes: Int64Array) -> "MixtureModel":
        """Return the model of some of the classes, ascending; codebooks stay, as their best densities set the limit."""
        streams = [replace(stream, weights=np.ascontiguousarray(stream.weights[:, classes])) for stream in self.streams]
        return replace(self, codebooks=self.codebooks[classes], streams=streams)

    def save(self, path: str | Path) -> None:
        """Write a file that `load` reads."""
        tensors: dict[str, np.ndarray] = {"codebooks": self.codebooks}
        for number, stream in enumerate(self.streams):
            tensors |= {f"{name}.{number}": getattr(stream, name) for name in MixtureStream.__dataclass_fields__}
        if self.transform is not None:
            tensors["transform"] = self.transform
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
        transform = tensors.pop("transform", None)
        num_streams = (len(tensors) - 1) // len(names)
        expected = {"codebooks", *(f"{name}.{number}" for name in names for number in range(num_streams))}
        dim, best, limit = (metadata.get(name) for name in ("dim", "best", "limit"))
        if tensors.keys() != expected or not num_streams or type(dim) is not int or type(best) is not int:
            raise ModelError(
                f"{path}: tensors {', '.join(sorted(tensors))[:80]}; expected codebooks and those of streams"
            )
        streams = [MixtureStream(*(tensors[f"{name}.{number}"] for name in names)) for number in range(num_streams)]
        most = math.inf if limit is None else float(limit)
        model = cls(tensors["codebooks"], streams, record, dim, best, most, transform)
        model.check(f"{path}")
        return model

    def check(self, where: str) -> None:
        """Raise ModelError unless all sizes fit, and all numbers are in range."""
        size = self.streams[0].norms.shape
        sound = self.codebooks.dtype == np.int32 and self.codebooks.ndim == 1 and len(self.codebooks) > 0
        sound = sound and len(size) == 2 and 0 <= self.codebooks[0] <= self.codebooks[-1] < size[0]
        sound = sound and bool(np.all(np.diff(self.codebooks) >= 0))
        sound = sound and 1 <= self.best <= size[1] and self.limit > 0 and self.dim > 0
        num_values = self.dim
        if self.transform is not None:
            sound = sound and self.transform.dtype == np.float32 and self.transform.ndim == 2
            sound = sound and self.transform.shape[1] % self.dim == 0 and self.window % 2 == 1
            sound = sound and bool(np.isfinite(self.transform).all())
            num_values = len(self.transform)
        for stream in self.streams:
            shape = (size[0], len(stream.rows), size[-1])
            sound = sound and stream.rows.dtype == np.int32 and stream.rows.ndim == 1 and len(stream.rows) > 0
            sound = sound and 0 <= stream.rows.min() <= stream.rows.max() < num_values
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
        self.window = model.window
        self.dim = model.dim
        self._transform = model.transform
        self.num_outputs = len(model.codebooks)
        self._codebooks = model.codebooks
        self._ends = np.searchsorted(model.codebooks, np.arange(len(model.streams[0].norms) + 1))
        self._best = model.best
        self._limit = model.limit
        self._streams = model.streams

    @property
    def posterior_scale(self) -> float:
        """Posteriors of Gaussians are too sure."""
        return GAUSSIAN_SCALE

    def score_windows(self, stacked: np.ndarray, step: int = STEP) -> np.ndarray:
        """Return scores (num_outputs, T), float32 in Fortran order, for stacked frames (T, window * dim)."""
        if self._transform is not None:
            stacked = stacked @ self._transform.T
        scores = np.zeros((len(stacked), self.num_outputs), np.float32)
        sums = np.empty((BLOCK, self.num_outputs), np.float32)
        highest = np.empty((BLOCK, len(self._ends) - 1), np.float32)
        for begin in range(0, len(stacked), BLOCK):
            block = scores[begin : begin + BLOCK]
            for stream in self._streams:
                frames = np.ascontiguousarray(stacked[begin : begin + BLOCK, stream.rows], np.float32)
                mixture_stream(
                    frames, stream.means, stream.precisions, stream.norms, stream.weights, self._ends, self._best,
                    self._limit, sums, highest,
                )  # fmt: skip
                block += np.log(sums[: len(block)])
                block += highest[: len(block), self._codebooks]
        return scores.T


BLOCK = 32  # frames for which a codebook is read once: one of en-us (13 KB a stream) stays in the first-level cache


GROUP = 4  # densities whose weights are added at a time; there are too few classes in a codebook for one by one
LOWEST = np.float32(-3e38)


# Without "ninf", as models of which all densities count have an infinite limit.
@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "arcp", "contract", "afn", "reassoc"})
def mixture_stream(
    frames: Float32Array,
    means: Float32Array,
    precisions: Float32Array,
    norms: Float32Array,
    weights: Float32Array,
    ends: Int64Array,
    best: int,
    limit: float,
    sums: Float32Array,
    highest: Float32Array,
) -> None:
    """Fill sums (T, K) and highest (T, C), T <= BLOCK: the scores are ln(sums) + highest.

    frames (T, w); means and precisions (C, w, D), norms (C, D), weights (D, K): see MixtureStream; ends (C + 1,): the
    classes of codebook c are ends[c] .. ends[c + 1] - 1; best: densities that count; limit: see MixtureModel.

    highest is the best density of each codebook, and sums are relative to it, so that they stay in range.  The caller
    takes all logarithms at once, which NumPy does four times faster.
    """
    num_frames, width = frames.shape
    num_codebooks, num_densities = norms.shape
    value = np.empty(num_densities, np.float32)
    candidates = np.empty(num_densities + 1, np.int64)
    top = np.empty((num_frames, num_codebooks, best), np.float32)
    density = np.zeros((num_frames, num_codebooks, best + GROUP), np.int64)
    shares = np.zeros(best + GROUP, np.float32)
    for c in range(num_codebooks):
        num_densities = norms.shape[1]
        while num_densities > 1 and norms[c, num_densities - 1] == PADDING:
            num_densities -= 1
        for t in range(num_frames):
            for d in range(num_densities):
                value[d] = norms[c, d]
            for i in range(width):
                x = frames[t, i]
                for d in range(num_densities):
                    difference = x - means[c, i, d]
                    value[d] -= difference * difference * precisions[c, i, d]
            # The densities that were best a frame ago leave few candidates; collecting them without a branch takes a
            # third of the time of a branch for each density, which processors predict badly.
            cutoff = LOWEST
            if t > 0:
                cutoff = value[density[t - 1, c, 0]]
                for n in range(1, best):
                    cutoff = min(cutoff, value[density[t - 1, c, n]])
            num_candidates = 0
            for d in range(num_densities):
                candidates[num_candidates] = d
                num_candidates += value[d] >= cutoff
            for n in range(best):
                top[t, c, n] = LOWEST
            for number in range(num_candidates):
                d = candidates[number]
                if value[d] > top[t, c, best - 1]:
                    place = best - 1
                    while place > 0 and top[t, c, place - 1] < value[d]:
                        top[t, c, place] = top[t, c, place - 1]
                        density[t, c, place] = density[t, c, place - 1]
                        place -= 1
                    top[t, c, place] = value[d]
                    density[t, c, place] = d
    for t in range(num_frames):
        floor = LOWEST
        for c in range(num_codebooks):
            floor = max(floor, top[t, c, 0])
        floor -= np.float32(limit)
        for c in range(num_codebooks):
            first = max(top[t, c, 0], floor)
            highest[t, c] = first
            for n in range(best):
                shares[n] = np.float32(math.exp(max(top[t, c, n], floor) - first))
            for k in range(ends[c], ends[c + 1]):
                sums[t, k] = 0.0
            for n in range(0, best, GROUP):  # shares beyond the last are 0
                rows = density[t, c, n : n + GROUP]
                for k in range(ends[c], ends[c + 1]):
                    sums[t, k] += (
                        shares[n] * weights[rows[0], k]
                        + shares[n + 1] * weights[rows[1], k]
                        + shares[n + 2] * weights[rows[2], k]
                        + shares[n + 3] * weights[rows[3], k]
                    )
