"""A trained i-vector extractor: background model, total-variability matrix and options, in one file."""

import hashlib
import json
import zlib
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from features.config import FeatureConfig
from features.ivectors.background import (
    Background,
    array,
    background_of,
    covariance_array,
    mixture_arrays,
    number,
    whole,
)
from features.ivectors.extractor import Extractor, Statistics
from features.ivectors.options import ChunkSchedule, IvectorOptions
from features.ivectors.streaming import IvectorStream, SpeakerState
from features.record import config_of
from readers.common.file_part import FilePart
from readers.common.report import Figures
from readers.config.feature_record import FeatureRecord
from readers.errors import ArgonautError, ConfigError, FormatError, ModelError, ShapeError
from readers.tables.tensor_file import load_tensors, save_tensors, tensor_bytes

__all__ = ["IvectorModel"]

FORMAT, VERSION = "argonaut-ivectors", 1
AGAIN = "expected a model of argonaut ivector train"
CHECKSUM = "checksum"  # of everything else in the file


@dataclass(frozen=True, eq=False)
class IvectorModel:
    """Estimates i-vectors of speakers from features.

    Parameters
    ----------
    background : Background
    extractor : Extractor
    options : IvectorOptions
    record : FeatureRecord
        How the features of the training were computed, as far as it is known.
    source : str
        Its name in messages.
    chunks : ChunkSchedule or None
        For recognition where i-vectors follow the search, as in Kaldi's; None: one in every period.

    Examples
    --------
    >>> model = IvectorModel.load("speakers.ivector")
    >>> len(model.offline([frames])) == model.dim
    True
    >>> stream = model.stream()
    >>> vectors = stream.push(frames)  # one for every 10 frames
    >>> bool(abs(stream.current() - model.offline([frames])).max() < 1e-5)
    True
    """

    background: Background
    extractor: Extractor
    options: IvectorOptions = field(default_factory=IvectorOptions)
    record: FeatureRecord = field(default_factory=FeatureRecord)
    source: str = "i-vector model"
    chunks: ChunkSchedule | None = None

    @property
    def dim(self) -> int:
        """Values of an i-vector."""
        return self.extractor.dim

    @property
    def num_values(self) -> int:
        """Values of a frame of features."""
        return len(self.background.mean.mean)

    @cached_property
    def checksum(self) -> str:
        """16 hexadecimal digits that tell models apart, whatever their options."""
        arrays, metadata = self._parts()
        digest = hashlib.sha256(f"{metadata['offset']!r}".encode())
        for name in sorted(arrays):
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
        return digest.hexdigest()[:16]

    def feature_config(self) -> FeatureConfig:
        """Return how the features are computed from audio.

        Raises
        ------
        ConfigError
            For a model that was trained on features of unknown origin.
        """
        try:
            return config_of(self.record)
        except FormatError as fault:
            raise ConfigError(
                f"{self.source}: was trained on features of unknown settings; expected features that argonaut hcopy "
                "made, so that they can be computed from audio"
            ) from fault

    def check_frames(self, frames: np.ndarray) -> np.ndarray:
        """Return frames (d, T) as (T, d) float64.  Raises ShapeError unless they fit and are finite."""
        if frames.ndim != 2 or frames.shape[0] != self.num_values:
            raise ShapeError(
                f"features: {'x'.join(map(str, frames.shape))} values; expected frames of {self.num_values}, as in "
                f"the training of {self.source}"
            )
        if not np.isfinite(frames).all():
            bad = int(np.flatnonzero(~np.isfinite(frames).all(axis=0))[0])
            raise ShapeError(f"features: frame {bad} has a value that is infinite or NaN; expected finite values")
        return np.ascontiguousarray(frames.T, np.float64)

    def offline(self, utterances: list[np.ndarray]) -> np.ndarray:
        """Return the i-vector of one or more utterances of a speaker.

        Parameters
        ----------
        utterances : list of (d, T) array

        Returns
        -------
        (D,) float32

        Raises
        ------
        ShapeError
            For frames of another size and values that are not finite.
        """
        shape = self.background.diagonal.means.shape
        occupancy = np.zeros(shape[0])
        total = np.zeros(shape)
        for frames in utterances:
            more, sums = self.background.statistics(self.check_frames(frames), self.options)
            occupancy = occupancy + more
            total = total + sums
        terms = self.extractor.terms(Statistics(occupancy[None], total[None]))
        return self.extractor.expected(*terms, self.prior_scale(occupancy.sum()))[0].astype(np.float32)

    def online(self, frames: np.ndarray) -> np.ndarray:
        """Return the i-vectors (D, ceil(T / period)) float32 that a stream gives for frames (d, T)."""
        stream = self.stream()
        return np.concatenate([stream.push(frames), stream.finish()], axis=1)

    def stream(self, state: "SpeakerState | None" = None) -> "IvectorStream":
        """Begin an utterance of a new speaker, or of the one whose state is given."""
        return IvectorStream(self, state)

    def prior_scale(self, count: float) -> float:
        """Return the factor on the prior for a number of scaled frames."""
        most = self.options.max_count
        return max(count / most, 1.0) if most else 1.0

    def save(self, path: str | Path) -> None:
        """Write the model to a file, atomically."""
        save_tensors(path, *self._parts())

    def as_bytes(self) -> bytes:
        """Return the content of the file that `save` writes."""
        return tensor_bytes(*self._parts())

    def _parts(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        mean = self.background.mean
        metadata = {
            "format": FORMAT, "version": VERSION, "options": asdict(self.options), "offset": self.extractor.offset,
            "window": mean.window, "prior_frames": mean.prior, "features": self.record.as_json(),
        }  # fmt: skip
        projection = self.background.projection
        if projection is not None:
            metadata["splice"] = [projection.left, projection.right]
        if self.chunks is not None:
            metadata["chunks"] = asdict(self.chunks)
        arrays = {"mean": mean.mean, **mixture_arrays(self.background)}
        arrays |= {"projections": self.extractor.projections, "covariances": self.extractor.covariances}
        return arrays, metadata | {CHECKSUM: _checksum(arrays, metadata)}

    @classmethod
    def load(cls, path: str | Path | FilePart) -> Self:
        """Read a model.

        Parameters
        ----------
        path : str, Path or FilePart

        Returns
        -------
        IvectorModel

        Raises
        ------
        ModelError
            For a damaged or foreign file.
        OSError
        """
        arrays, metadata = load_tensors(path)
        stored = metadata.pop(CHECKSUM, None)  # models of earlier versions have none
        if stored is not None and (checksum := _checksum(arrays, metadata)) != stored:
            raise ModelError(
                f"{path}: damaged, with the checksum {checksum}; expected {str(stored)[:20]}; copy the file again, or "
                "train the model again"
            )
        try:
            if (metadata.get("format"), metadata.get("version")) != (FORMAT, VERSION):
                raise ModelError(f"format {metadata.get('format')!r} version {metadata.get('version')!r}")
            options = IvectorOptions(**_stored_options(metadata["options"], IvectorOptions, ("select", "period")))
            chunks = None
            if "chunks" in metadata:
                stored_chunks = _stored_options(metadata["chunks"], ChunkSchedule, ("size", "ahead", "step"))
                chunks = ChunkSchedule(**stored_chunks)
            record = FeatureRecord.parse(metadata["features"], "features")
            window = whole(metadata["window"], "window", 1)
            prior = whole(metadata["prior_frames"], "prior_frames")
            background = background_of(arrays, window, prior, metadata.get("splice"))
            extractor = Extractor(
                array(arrays, "projections", (*background.diagonal.means.shape, None)),
                covariance_array(arrays, "covariances", background.diagonal.means.shape),
                float(number(metadata["offset"], "offset")),
            )
        except (ArgonautError, KeyError, TypeError, ValueError) as fault:
            text = f"no {fault}" if isinstance(fault, KeyError) else f"{fault}".partition("; expected")[0]
            raise ModelError(f"{path}: {text}; {AGAIN}") from fault
        return cls(background, extractor, options, record, f"{path}", chunks)


def _stored_options(
    stored: Any, kind: type[IvectorOptions] | type[ChunkSchedule], whole_numbers: Collection[str]
) -> dict[str, Any]:
    """Return the values of a file for options of a kind.  Raises ModelError for others, and for other types."""
    if not isinstance(stored, dict) or stored.keys() != {field.name for field in fields(kind)}:
        raise ModelError(f"options {str(stored)[:60]!r}")
    for name, value in stored.items():
        (whole if name in whole_numbers else number)(value, name)
    return stored


def _checksum(arrays: dict[str, np.ndarray], metadata: dict[str, Any]) -> str:
    """8 hexadecimal digits that change with any byte of a model."""
    checksum = zlib.crc32(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        checksum = zlib.crc32(array.data, zlib.crc32(f"{name} {array.dtype} {array.shape}".encode(), checksum))
    return f"{checksum:08x}"


def _text(options: IvectorOptions | ChunkSchedule) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in asdict(options).items())


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    model = IvectorModel.load(path)
    background = model.background
    covariances = "diagonal" if background.full is None else "full"
    return [
        ("i-vectors", f"{model.dim} values"),
        ("background", f"{len(background.diagonal.weights)} Gaussians of {model.num_values} values, {covariances}"),
        ("mean", f"of {background.mean.window} frames, at first with {background.mean.prior} frames of the training"),
        ("options", _text(model.options)),
        *([] if model.chunks is None else [("chunks", _text(model.chunks))]),
        ("trained on", ", ".join(model.record.texts()) or "features of unknown settings"),
    ]
