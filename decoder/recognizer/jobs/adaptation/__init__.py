"""Adaptation of a recogniser to the words of its user.

Open job.py first; options.py declares the options, text.py reads texts, language.py adapts a language model to one.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
