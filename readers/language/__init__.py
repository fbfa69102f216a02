"""Language models (ARPA), acceptors (AT&T text), vocabularies, word classes, hotwords and labelled text.

Open arpa.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
