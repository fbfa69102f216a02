"""File formats, the configuration language and minibatch sources.

This room reads and writes every file that another tool also reads or writes.  It knows nothing of signal processing,
networks or search.  Open htk/parameter_file.py first: it is a reader and a writer as all others are.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "errors": ["ArgonautError", "ConfigError", "FormatError", "GraphError", "ModelError", "ShapeError"],
    },
)
