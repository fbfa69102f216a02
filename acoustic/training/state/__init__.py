"""State of a training: model files with their checkpoints, and snapshots in memory.

Open checkpoint.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
