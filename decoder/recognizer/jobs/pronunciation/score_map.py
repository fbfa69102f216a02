"""Maps from features to scores: ridge regression on the features and on random cosines of them.

The cosines approximate a Gaussian kernel, so the map can bend as a network with a hidden layer does, but the weights
that fit the training set best are found at once, by one system of linear equations.

References
----------
Rahimi and Recht, Random features for large-scale kernel machines, NIPS 2007; Hoerl and Kennard, Ridge regression,
Technometrics 12, 1970.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from readers.errors import ModelError

CLIP = 4.0  # standard deviations from the mean at which features are clipped
LEAST_SCALE = 1e-3
ROWS = 4096  # features that are mapped at a time


@dataclass(frozen=True, kw_only=True)
class Ridge:
    """How a map is fitted.

    Attributes
    ----------
    cosines : int
        Number of random cosines; 0 for a linear map.
    width : float
        Variance of their frequencies, times the number of features; the larger, the more the map bends.
    penalty : float
        On the squares of the weights.
    linear : float
        Share of the linear part in the kernel.
    """

    cosines: int = 1000
    width: float = 0.3
    penalty: float = 0.3
    linear: float = 0.0


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """A map from F features to a score, with m cosines.

    Attributes
    ----------
    mean, scale : (F,) float32
        By which features are standardised.
    frequencies : (F, m) float32
    phases : (m,) float32
    weights : (m,) float32
        Of the cosines.
    slopes : (F,) float32
        Of the standardised features.
    offset : (1,) float32
        The mean score of the training set.
    """

    mean: np.ndarray
    scale: np.ndarray
    frequencies: np.ndarray
    phases: np.ndarray
    weights: np.ndarray
    slopes: np.ndarray
    offset: np.ndarray

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Return the scores (n,) float64 of features (n, F), which may lie a little outside of the scale."""
        values = np.clip((features - self.mean) / self.scale, -CLIP, CLIP)
        return self.offset[0] + values @ self.slopes + np.cos(values @ self.frequencies + self.phases) @ self.weights

    @classmethod
    def fit(cls, features: np.ndarray, scores: np.ndarray, ridge: Ridge, seed: int = 0) -> Self:
        """Fit a map to features (n, F) of known scores (n,)."""
        num_features = features.shape[1]
        mean = features.mean(axis=0)
        scale = features.std(axis=0)
        scale[scale < LEAST_SCALE] = 1.0  # nothing is learnt of what never changes
        rng = np.random.default_rng(seed)
        frequencies = rng.normal(size=(num_features, ridge.cosines)) * np.sqrt(ridge.width / num_features)
        phases = rng.uniform(0, 2 * np.pi, ridge.cosines)
        height = np.sqrt(2 / max(ridge.cosines, 1))
        slope = np.sqrt(ridge.linear / num_features)
        size = num_features + ridge.cosines
        products = ridge.penalty * np.eye(size)
        targets = np.zeros(size)
        offset = scores.mean()
        for begin in range(0, len(features), ROWS):
            rows = slice(begin, begin + ROWS)
            values = np.clip((features[rows] - mean) / scale, -CLIP, CLIP)
            columns = np.hstack([slope * values, height * np.cos(values @ frequencies + phases)])
            products += columns.T @ columns
            targets += columns.T @ (scores[rows] - offset)
        weights = np.linalg.solve(products, targets)
        arrays = (
            *(mean, scale, frequencies, phases),
            *(height * weights[num_features:], slope * weights[:num_features], np.array([offset])),
        )
        return cls(*(array.astype(np.float32) for array in arrays))

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return the arrays for a file, with a name before theirs."""
        return {f"{name}.{entry.name}": getattr(self, entry.name) for entry in fields(self)}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray], name: str, num_features: int) -> Self:
        """Return the map that `arrays` stored.  Raises ModelError for missing arrays and for other shapes."""
        names = [f"{name}.{entry.name}" for entry in fields(cls)]
        for key in names:
            if key not in arrays or not np.isfinite(arrays[key]).all():
                raise ModelError(f"{key} is missing or not finite")
        score_map = cls(*(arrays[key] for key in names))
        num_cosines = len(score_map.phases)
        shapes = [(num_features,)] * 2 + [(num_features, num_cosines), (num_cosines,), (num_cosines,)]
        shapes += [(num_features,), (1,)]
        for key, shape in zip(names, shapes):
            if arrays[key].shape != shape:
                raise ModelError(f"{key} of shape {arrays[key].shape}, not {shape}")
        if not (score_map.scale > 0).all():
            raise ModelError(f"{name}.scale is not above 0")
        return score_map
