"""Procedures besides gradient descent: statistics, adaptation, layer-wise training, mixing-up, model combination.

Each file holds one procedure; open precompute.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
