"""The actions of a configuration's commands by name, each a class in a module of its own (CNTK book, section 3.5).

This package is a catalogue. Open `base.py` first, then `evaluate.py` as a model for an action.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
