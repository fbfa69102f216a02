"""What sequence criteria compare the network's outputs with: lattices of whole utterances, from archives.

Open lattice_archive.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
