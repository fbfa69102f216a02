"""Denominator lattices and numerator alignments of training utterances, for MMI, MPE and sMBR.

Open job.py, and maker.py first, which makes the lattice of an utterance; worker.py opens what it needs.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
