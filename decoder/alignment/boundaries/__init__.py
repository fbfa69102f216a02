"""How far the boundaries of two alignments are apart: the figures by which aligners are compared.

Open matching.py first, which finds the boundaries and their counterparts; figures.py computes the figures, files.py
reads alignments in the forms of other programs, job.py puts them together, and report.py prints them.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
