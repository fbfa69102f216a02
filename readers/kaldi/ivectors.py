"""Kaldi's i-vector extractors (`final.ie`) and their background models of diagonal Gaussians (`final.dubm`).

Source: ivector-extractor.cc and diag-gmm.cc of Kaldi.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from readers.common.report import Figures
from readers.kaldi.objects import Floats, KaldiObjects


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """A mixture of Gaussians with diagonal covariances.

    Attributes
    ----------
    weights : (C,) float64
    means, variances : (C, d) float64
    """

    weights: Floats
    means: Floats
    variances: Floats


@dataclass(frozen=True, eq=False)
class IvectorExtractor:
    """The model of i-vectors: with the i-vector w, Gaussian c has the mean M_c w and the covariance S_c.

    Attributes
    ----------
    projections : (C, d, D) float64
        M_c.
    inverse_covariances : (C, d, d) float64
    offset : float
        Mean of the first value of an i-vector in the prior.
    """

    projections: Floats
    inverse_covariances: Floats
    offset: float


def read_gaussian_mixture(path: str | Path) -> GaussianMixture:
    """Read a mixture such as `final.dubm`, binary or text.

    Parameters
    ----------
    path : path

    Returns
    -------
    GaussianMixture

    Raises
    ------
    FormatError
        For another file, sizes that do not fit, and weights or variances that are not positive.
    OSError
    """
    objects = KaldiObjects(path)
    mixture = diagonal_mixture(objects)
    objects.end()
    return mixture


def diagonal_mixture(objects: KaldiObjects) -> GaussianMixture:
    """Read a mixture, one of several objects of a file.

    Parameters
    ----------
    objects : KaldiObjects

    Returns
    -------
    GaussianMixture

    Raises
    ------
    FormatError
        For another object, sizes that do not fit, and weights or variances that are not positive.
    """
    objects.expect("<DiagGMM>", "<DiagGMMBegin>")
    if objects.expect("<GCONSTS>", "<WEIGHTS>") == "<GCONSTS>":
        objects.vector()  # they follow from the others
        objects.expect("<WEIGHTS>")
    begin = objects.position
    weights = objects.vector()
    objects.expect("<MEANS_INVVARS>")
    scaled_means = objects.matrix()
    objects.expect("<INV_VARS>")
    precisions = objects.matrix()
    objects.expect("</DiagGMM>", "<DiagGMMEnd>")
    if scaled_means.shape != precisions.shape or len(weights) != len(precisions) or not precisions.size:
        sizes = ", ".join(f"{rows}x{cols}" for rows, cols in (scaled_means.shape, precisions.shape))
        objects.refuse(f"{len(weights)} weights for means and variances of {sizes}", "equal numbers", begin)
    if weights.min() < 0 or abs(weights.sum() - 1) > 1e-3:
        objects.refuse(f"weights whose sum is {weights.sum():g}", "weights of a mixture", begin)
    if precisions.min() <= 0:
        objects.refuse("a variance that is not positive", "variances", begin)
    return GaussianMixture(weights, scaled_means / precisions, 1 / precisions)


def read_ivector_extractor(path: str | Path) -> IvectorExtractor:
    """Read an extractor such as `final.ie`, binary or text.

    Parameters
    ----------
    path : path

    Returns
    -------
    IvectorExtractor

    Raises
    ------
    FormatError
        For another file, one whose weights depend on the i-vector, and sizes that do not fit.
    OSError
    """
    objects = KaldiObjects(path)
    objects.expect("<IvectorExtractor>")
    objects.expect("<w>")
    begin = objects.position
    if objects.matrix().size:
        objects.refuse("weights that depend on the i-vector", "an extractor without them, as in recipes", begin)
    objects.expect("<w_vec>")
    objects.vector()
    objects.expect("<M>")
    begin = objects.position
    count = objects.integer(1)
    projections = [objects.matrix()]
    shape = projections[0].shape
    while len(projections) < count:
        projections.append(objects.matrix())
        if projections[-1].shape != shape:
            objects.refuse("Gaussians of different sizes", "matrices of equal sizes", begin)
    objects.expect("<SigmaInv>")
    inverses = []
    for _ in range(count):
        begin = objects.position
        inverses.append(objects.symmetric())
        if len(inverses[-1]) != shape[0]:
            objects.refuse(f"a covariance of {len(inverses[-1])} values", f"{shape[0]}", begin)
    objects.expect("<IvectorOffset>")
    offset = objects.number()
    objects.expect("</IvectorExtractor>")
    objects.end()
    return IvectorExtractor(np.array(projections), np.array(inverses), offset)


def mixture_summary(path: str) -> Figures:
    """Return the figures of a mixture for `argonaut info`."""
    mixture = read_gaussian_mixture(path)
    return [("Gaussians", len(mixture.weights)), ("values", mixture.means.shape[1])]


def extractor_summary(path: str) -> Figures:
    """Return the figures of an extractor for `argonaut info`."""
    extractor = read_ivector_extractor(path)
    count, values, dim = extractor.projections.shape
    return [("i-vectors", f"{dim} values"), ("Gaussians", f"{count} of {values} values"), ("offset", extractor.offset)]
