"""What compiled code runs on: BLAS, threads, matrix products, and calls that are recorded and replayed.

Nodes, readers and update rules never hear of this room.  Open products.py first, then recorder.py and replay.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "engine_options": ["EngineOptions", "engines_with"],
        "thread_team": ["computing_with"],
    },
)
