"""The jobs on lattices: from the lattices of an index to words, networks, other lattices and n-best lists.

Open index.py first, which reads the lattices; options.py declares the options.  words.py, writing.py, conversion.py and
nbest.py have the jobs.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
