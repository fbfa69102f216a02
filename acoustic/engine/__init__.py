"""Executes a network: values of its roots, and gradients of a criterion.

Open engine.py first. planning/ decides which steps run, in which order and in which memory; execution/ runs one pass.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
