"""OpenFst's binary format for automata of the type vector, without symbol tables."""

import struct
from collections.abc import Sequence

BEGIN = struct.pack("<ii6s", 2125659606, 6, b"vector")
VERSION = 2
_PROPERTIES = 3  # expanded and mutable; OpenFst computes the others when needed


def vector_fst(arc_type: bytes, finals: Sequence[bytes], leaving: Sequence[Sequence[bytes]], start: int = 0) -> bytes:
    """Return the file of an automaton.

    Parameters
    ----------
    arc_type : bytes
        OpenFst's name, such as `standard`.
    finals : sequence of bytes
        Final weight of each state.
    leaving : sequence of sequence of bytes
        The arcs that leave each state: two labels (int32), the weight, and the next state (int32).
    start : int
        Start state.

    Returns
    -------
    bytes
    """
    sizes = struct.pack("<iiQqqq", VERSION, 0, _PROPERTIES, start, len(finals), 0)  # OpenFst writes 0 arcs, too
    states = (final + struct.pack("<q", len(arcs)) + b"".join(arcs) for final, arcs in zip(finals, leaving))
    return b"".join([BEGIN, struct.pack("<i", len(arc_type)), arc_type, sizes, *states])
