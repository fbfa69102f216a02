"""Alignment of long recordings with imperfect transcripts.  Open long_alignment.py first."""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
