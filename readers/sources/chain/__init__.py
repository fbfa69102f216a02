"""Lattice-free MMI's supervision of training utterances: the denominator graph and numerator graphs in files.

Open supervision_source.py first: a reader's block `chain` makes it.  composition.py computes numerator graphs.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
