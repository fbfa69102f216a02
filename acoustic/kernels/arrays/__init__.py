"""Kernels written once in terms of `xp`, numpy or cupy: for the GPU, double precision, and to test compiled kernels.

Open elementwise.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
