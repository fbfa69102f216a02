"""Results of the search: labels of MLF files, HTK lattices, and recognition of audio as it arrives.

Open outputs.py first, then live_recognition.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
