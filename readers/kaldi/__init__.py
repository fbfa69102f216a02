"""Kaldi's archives and script files of matrices and alignments, and lattices in Kaldi's text format.

Open ark.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
