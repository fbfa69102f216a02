"""ArrayReader: minibatches of arrays in memory, for training from Python.

Open array_reader.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
