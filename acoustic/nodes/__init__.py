"""Node types, a file for each family, and the class that they derive from.

This is a catalogue: open base.py, then one type as a model (elementwise.py).  registry.py finds a type by its name.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "base": ["Node", "Option", "Shape", "register_node"],
        "registry": ["node_class", "registered_nodes"],
    },
)
