"""Recurrent loops: a single node for the engine, computed step by step inside, interpreted or compiled.

Open loop_node.py first, which interprets a loop; compiled_loop.py computes it in one call of compiled code.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
