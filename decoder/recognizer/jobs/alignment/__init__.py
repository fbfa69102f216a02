"""Alignment of a corpus: the times of its words and phones, by a model or by one that is trained on it.

Open job.py first; options.py declares the options.  recordings.py divides a corpus into recordings, aligning.py aligns
one recording, results.py holds its words and phones and keeps them for the next run, output.py writes them in the
formats of other programs, training.py trains a model.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
