"""Pronunciation dictionaries of HTK, CMU, Kaldi and MFA, told apart by their content.

Open forms.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
