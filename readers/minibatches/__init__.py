"""Minibatches, and the base classes of all readers and writers.

Open base.py first, then sequence_layout.py, which defines how sequences are arranged in the columns of a minibatch.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
