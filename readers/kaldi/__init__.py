"""Kaldi's archives and script files of matrices and alignments, lattices, transition models and nnet3 networks.

Open ark.py first; for models, objects.py and nnet3/nnet.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
