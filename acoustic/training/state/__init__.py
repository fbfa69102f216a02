"""What a training can be continued from: model files with checkpoints beside them, and snapshots in memory.

Open checkpoint.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "checkpoint": ["TrainingFiles"],
    },
)
