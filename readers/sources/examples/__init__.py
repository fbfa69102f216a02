"""Archives of training examples in random order, which are written once and read sequentially.

Open example_archive.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
