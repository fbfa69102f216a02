"""Tools that all readers share: atomic writing, text with line numbers, collected faults, run reports, processes,
names of array types.

Open files.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
