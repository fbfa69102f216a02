"""A graph of nodes and its operations: traversal, editing, comparison and storage.

Open `network.py` first, then `traversal.py` for the evaluation orders (CNTK book, Algorithms 2.2 to 2.6).
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
