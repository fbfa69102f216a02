"""Arithmetic on matrices: every kernel in terms of `xp` (numpy or cupy), the most used ones also compiled.

Open backend.py first, then arrays/elementwise.py and its compiled counterpart.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
