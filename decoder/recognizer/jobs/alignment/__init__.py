"""Alignment of a corpus: the times of its words and phones, by a model or by one that is trained on it.

Open job.py first; options.py declares the options.  recordings.py divides a corpus into recordings, aligning.py aligns
one recording, results.py keeps its words and phones for the next run, output.py writes the files of the formats, and
training.py trains a model.  decoder/results/alignment.py holds an aligned recording.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
