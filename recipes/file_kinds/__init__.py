"""What a file is and contains: one module for each family of kinds, one function for each kind.

This package is a catalogue.  Open detection.py first, which tells kinds apart.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
