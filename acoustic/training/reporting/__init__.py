"""What a training shows and leaves to be read: log lines in CNTK's wording, progress, history, plots.

Open log.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "display": ["Callbacks"],
        "log": ["read_history"],
    },
)
