"""Grammars of sentences: JSGF, HParse's notation and lists of phrases become one form, a network of words.

Open network.py first.  expression.py turns rules into a network, jsgf.py, hparse.py and phrase_list.py read the forms.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
