"""Forced alignment: when each state, phone and word of a known transcript was spoken.

Open aligner.py first; interpolation.py makes its boundaries finer than frames, goodness.py says how well the
audio matches each phone, boundaries/ compares two alignments.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
