"""Gaussian mixtures in place of a network: the scorer of front ends."""

import numpy as np

from acoustic.scoring.window_scorer import GAUSSIAN_SCALE, STEP, WindowScorer
from decoder.gaussians.models import GaussianModels
from readers.config.feature_record import FeatureRecord


class GaussianScorer(WindowScorer):
    """Scores frames by Gaussian mixtures.

    Parameters
    ----------
    models : GaussianModels
    record : FeatureRecord
        How the features of the training were computed.
    source : str
        The name of the models in messages.
    """

    def __init__(self, models: GaussianModels, record: FeatureRecord, source: str = "Gaussian models"):
        self.models = models
        self.record = record
        self.source = source
        self.window = 1
        self.dim = models.dim
        self.num_outputs = len(models.states)

    @property
    def posterior_scale(self) -> float:
        """Posteriors of Gaussians are too sure."""
        return GAUSSIAN_SCALE

    def score_windows(self, stacked: np.ndarray, step: int = STEP) -> np.ndarray:
        """Return scores (num_outputs, T), float32 in Fortran order, for frames (T, dim)."""
        return self.models.log_likelihoods(stacked.T)
