"""Transforms and Gaussians of a training, and the file that holds them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from decoder.gaussians.adaptation.options import MOST_SPLICE
from decoder.gaussians.adaptation.shards import Projection
from decoder.gaussians.models import GaussianModels
from readers.config.feature_record import FeatureRecord
from readers.errors import FormatError, ModelError
from readers.tables.tensor_file import load_tensors

FORMAT, VERSION = "argonaut-fmllr", 1
MOST_DIM = 1 << 15  # values of a frame, which HTK counts in 16 bits


@dataclass(frozen=True, eq=False)
class Adaptation:
    """Transforms and Gaussians, between two passes or at the end.

    Attributes
    ----------
    projection : Projection
        LDA and MLLT.
    models : GaussianModels
        Of frames after the transforms of their speakers.
    independent : GaussianModels
        Of frames without these transforms.
    transforms : dict of str to (d, d + 1) float64
        Speaker -> transform; speakers with few frames have none.
    counts : dict of str to float
        Speaker -> frames, without silence.
    prior : (d, d + 1, d + 1) float64
        See `FmllrSums.with_prior`; zero before the first estimate.
    history : tuple of dict
        A row for each pass: pass, kind, gaussians, log_likelihood_per_frame, frames, speakers.  The log-likelihood
        is that before the pass; it contains the logarithms of the transforms' determinants.
    complete : bool
        Whether no pass is left.
    """

    projection: Projection
    models: GaussianModels
    independent: GaussianModels
    transforms: Mapping[str, np.ndarray] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)
    prior: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    history: tuple[dict[str, Any], ...] = ()
    complete: bool = False

    def parts(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return arrays and metadata, for a file."""
        arrays = {"matrix": self.projection.matrix, "prior": self.prior}
        for name, models in (("adapted", self.models), ("independent", self.independent)):
            for part in ("first", "weights", "means", "variances"):
                arrays[f"{name}.{part}"] = getattr(models, part)
        names = list(self.transforms)
        dim = self.models.dim
        arrays["transforms"] = np.array([self.transforms[name] for name in names]).reshape(-1, dim, dim + 1)
        form = {"splice": self.projection.splice, "kind": self.projection.kind}
        form |= {"period": self.projection.period, "dim": self.projection.dim}
        form["features"] = self.projection.record.as_json()
        metadata = {"states": list(self.models.states), "speakers": names, "form": form, "complete": self.complete}
        return arrays, metadata | {"counts": dict(self.counts)}

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file of `argonaut fmllr train`.  Raises FormatError or ModelError for other and damaged files."""
        arrays, metadata = load_tensors(path)
        if (metadata.get("format"), metadata.get("version")) != (FORMAT, VERSION):
            raise FormatError(f"{path}: not a file of `argonaut fmllr train` of this version")
        return cls.of_parts(arrays, metadata, path)

    @classmethod
    def of_parts(cls, arrays: dict[str, np.ndarray], metadata: dict[str, Any], path: Path) -> Self:
        """Return what `parts` gave; errors as those of `load`."""
        try:
            wrong = [
                name for name, array in arrays.items() if array.dtype.kind != ("i" if name.endswith("first") else "f")
            ]
            if wrong:
                raise FormatError(f"{path}: '{wrong[0]}' has another type; expected a file of `argonaut fmllr train`")
            form = metadata["form"]
            states = tuple(map(str, metadata["states"]))
            numbers = int(form["splice"]), str(form["kind"]), int(form["period"]), int(form["dim"])
            record = FeatureRecord.parse(form["features"], "features") if "features" in form else FeatureRecord()
            projection = Projection(np.ascontiguousarray(arrays["matrix"], np.float64), *numbers, record)
            models = [
                GaussianModels(
                    states, arrays[f"{name}.first"], arrays[f"{name}.weights"], arrays[f"{name}.means"],
                    arrays[f"{name}.variances"],
                )
                for name in ("adapted", "independent")
            ]  # fmt: skip
            shape = projection.matrix.shape
            dim = models[0].dim
            transforms = np.asarray(arrays["transforms"])
            prior = np.asarray(arrays["prior"])
            names = [str(name) for name in metadata["speakers"]]
            sizes_fit = (
                0 <= projection.splice <= MOST_SPLICE
                and shape[0] == dim == models[1].dim
                and shape[1] % (2 * projection.splice + 1) == 0
                and 0 < projection.num_values <= projection.dim < MOST_DIM
                and transforms.shape == (len(names), dim, dim + 1)
                and prior.shape in ((dim, dim + 1, dim + 1), (0, 0, 0))
                and all(np.isfinite(array).all() for array in (projection.matrix, transforms, prior))
            )
            if not sizes_fit:
                raise FormatError(f"{path}: arrays of other sizes or values; expected a file of `argonaut fmllr train`")
            return cls(
                projection, models[0], models[1], dict(zip(names, np.ascontiguousarray(transforms))),
                {str(name): float(count) for name, count in metadata["counts"].items()}, np.ascontiguousarray(prior),
                tuple(map(dict, metadata["history"])), bool(metadata["complete"]),
            )  # fmt: skip
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as fault:
            reason = " ".join(str(fault).split()) or type(fault).__name__
            raise ModelError(f"{path}: {reason}; expected a file of `argonaut fmllr train`") from fault
