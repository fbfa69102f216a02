"""Kaldi's models of diagonal Gaussian mixtures, as `final.mdl` of monophone and triphone systems has them.

Source: am-diag-gmm.cc and diag-gmm.cc of Kaldi.
"""

from readers.kaldi.ivectors import GaussianMixture, diagonal_mixture
from readers.kaldi.objects import KaldiObjects

MOST_VALUES = 10_000  # of a frame
# What acoustic models of other kinds begin with, after their transition model.
OTHER_KINDS = {"<SGMM>": "subspace Gaussian mixtures", "<Nnet>": "a network of nnet2"}


def read_gaussians(objects: KaldiObjects) -> list[GaussianMixture]:
    """Read the mixtures of a model, which follow its transition model.

    Parameters
    ----------
    objects : KaldiObjects
        Its position is that after the transition model; afterwards, the end of the file.

    Returns
    -------
    list of GaussianMixture
        One for each pdf, all of equally many values.

    Raises
    ------
    FormatError
        With file and position, for other kinds of models, sizes that do not fit, and values out of range.
    """
    begin = objects.position
    token = objects.token()
    if token != "<DIMENSION>":
        kind = f", {OTHER_KINDS[token]}" if token in OTHER_KINDS else ""
        objects.refuse(f"{token!r}{kind}", "<Nnet3> or <DIMENSION>, Gaussian mixtures of diagonal covariances", begin)
    dim = objects.integer(1, MOST_VALUES)
    objects.expect("<NUMPDFS>")
    count = objects.integer(1, len(objects.data))
    mixtures = []
    for _ in range(count):
        begin = objects.position
        mixture = diagonal_mixture(objects)
        if mixture.means.shape[1] != dim:
            objects.refuse(f"a mixture of {mixture.means.shape[1]} values", f"{dim}, as of the model", begin)
        mixtures.append(mixture)
    objects.end()
    return mixtures
