"""Small tables: HMM states and transitions of a decoding graph, priors, TIMIT label files, and models of dbn.exe.

Open hmm_tables.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
