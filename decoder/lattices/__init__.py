"""Operations on lattices: posteriors, consensus, combination, n-best lists, determinisation, rescoring, OpenFst.

They work on `readers.results.Lattice`, whatever file it comes from.  Open links.py first: the scored links, with which
every algorithm here starts.  The jobs on files of lattices are in jobs.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
