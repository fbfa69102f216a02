"""A graph of nodes and what can be done to it: traversal, editing, comparison, storage.

Open network.py first, then traversal.py for the orders of the CNTK book's Algorithms 2.2 to 2.6.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "network": ["Network"],
        "model_file": ["load_model", "save_model"],
        "editing": ["clone"],
    },
)
