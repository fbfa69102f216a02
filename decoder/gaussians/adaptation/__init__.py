"""LDA, MLLT and fMLLR: transforms of features for Gaussian mixtures, for all speakers and for each of them.

Open training.py first; lda.py, mllt.py and fmllr.py estimate one transform each, shards.py is the work on a part of the
data and speakers.py transforms features of new speakers.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
