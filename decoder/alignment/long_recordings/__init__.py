"""Alignment of long recordings with imperfect transcripts.  Open long_alignment.py first."""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "audio_scores": ["AudioScores"],
        "long_alignment": ["align_long"],
        "options": ["LongOptions"],
        "results": ["DamagedStretch", "LongAlignment", "SpokenPhone", "SpokenWord"],
        "sources": ["ArrayScores", "ScoreSource", "divide"],
    },
)
