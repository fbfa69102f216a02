"""Output of recognisers: n-best lists, transcripts (trn), words with times (CTM, JSON, TextGrid, subtitles).

Open timed_words.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "nbest": ["Hypothesis", "read_nbest", "write_nbest"],
        "textgrid": ["Interval", "Tier", "read_textgrid"],
        "timed_words": ["TimedWord", "read_ctm", "write_words"],
        "trn": ["read_trn"],
    },
)
