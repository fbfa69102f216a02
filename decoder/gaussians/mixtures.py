"""Gaussian models of HTK in the form of a bundle: mixtures with a codebook for each state."""

import math

import numpy as np

from acoustic.scoring.mixture_scorer import PADDING, MixtureModel, MixtureStream
from decoder.gaussians.models import GaussianModels
from readers.config.feature_record import FeatureRecord


def mixtures_of(models: GaussianModels, record: FeatureRecord) -> MixtureModel:
    """Return models with a codebook for each state.

    Parameters
    ----------
    models : GaussianModels
    record : FeatureRecord
        How the features are computed.

    Returns
    -------
    MixtureModel
        Its classes are the states; scores are those of `log_likelihoods`, in float32.

    Raises
    ------
    ModelError
        For values outside of the range of float32.
    """
    counts = models.num_components
    num_densities = int(counts.max())
    size = (len(counts), num_densities)
    is_density = np.arange(num_densities) < counts[:, None]  # in order of the components
    norms = np.full(size, PADDING)
    norms[is_density] = -0.5 * (models.dim * math.log(2 * math.pi) + np.log(models.variances).sum(axis=1))
    means = np.zeros((*size, models.dim))
    means[is_density] = models.means
    precisions = np.zeros((*size, models.dim))
    precisions[is_density] = 0.5 / models.variances
    weights = np.full(size, np.finfo(np.float32).tiny)
    weights[is_density] = np.maximum(models.weights, np.finfo(np.float32).tiny)
    with np.errstate(over="ignore"):
        stream = MixtureStream(
            np.arange(models.dim, dtype=np.int32),
            np.ascontiguousarray(means.transpose(0, 2, 1), np.float32),
            np.ascontiguousarray(precisions.transpose(0, 2, 1), np.float32),
            norms.astype(np.float32),
            np.ascontiguousarray(weights.T, np.float32),
        )
    codebooks = np.arange(len(counts), dtype=np.int32)
    model = MixtureModel(codebooks, [stream], record, models.dim, num_densities, math.inf)
    model.check("Gaussian models")
    return model
