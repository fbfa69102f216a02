"""The runtime of compiled code: BLAS, threads, matrix products, lists of operations and tables of calls.

Nodes, readers and update rules do not depend on it. Open operations.py first, then tables.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
