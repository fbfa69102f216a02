"""The runtime of compiled code: BLAS, threads, matrix products, and the recording and replay of calls.

Nodes, readers and update rules do not depend on it. Open products.py first, then recorder.py and replay.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
