"""Error rates as HTK's HResults counts them, and reports.

Open error_counts.py first; report.py writes tables and confusions.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "error_counts": ["EditPenalties", "Score", "ScoringResult", "score"],
    },
)
