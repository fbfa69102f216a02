"""Results of the search: labels of MLF files, HTK lattices, aligned recordings, and recognition of audio as it arrives.

Open outputs.py first, then alignment.py, which has the forms of other programs, and live_recognition.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
