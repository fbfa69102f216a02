"""Probabilities of a dictionary's pronunciations, and of silence beside them, from alignments.

Open job.py first; spoken.py takes words with their pronunciations and pauses out of alignments, probabilities.py counts
them and estimates.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
