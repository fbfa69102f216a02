"""HTK's file formats: features, labels, script files, lattices, dictionaries, model definitions, decision trees.

Open parameter_file.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
