"""Recurrent loops: one node among others outside, step by step inside, interpreted or compiled.

Open loop_node.py first: it interprets.  compiled_loop.py does the same in one call of compiled code.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "loop_node": ["Loop"],
    },
)
