"""Lattice-free MMI: forward-backward over the denominator graph, and over the numerator graph of each sequence.

Open objective.py first. The denominator is computed in scaled probabilities for several sequences at a time, the
numerators in logarithms; forward_mode.py is the plain computation of both, with their derivatives.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
