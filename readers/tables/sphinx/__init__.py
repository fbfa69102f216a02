"""Acoustic models of CMU Sphinx: model definition, Gaussians, mixture weights, transitions, parameters of features,
and n-gram models.

Open definition.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
