"""Error rates as HTK's HResults counts them, and reports.

Open job.py, and error_counts.py first; words.py reads transcripts, report.py writes tables and confusions, bootstrap.py
compares two systems, confidence.py judges confidences.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "bootstrap": ["Comparison", "compare_systems"],
        "confidence": [
            "JudgedWords",
            "Reliability",
            "expected_calibration_error",
            "judge_words",
            "normalised_cross_entropy",
            "reliability",
        ],
        "error_counts": ["EditPenalties", "Score", "ScoringResult", "score"],
        "job": ["ComparedFiles", "ScoreOptions", "ScoreResult", "score_files"],
        "words": ["read_words"],
    },
)
