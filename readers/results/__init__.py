"""Output of recognisers: n-best lists, transcripts (trn), words with times (CTM, JSON, TextGrid, subtitles).

indexed_archive.py keeps named records of arrays, such as lattices.  Open timed_words.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "indexed_archive": ["ArchiveRecord", "ArchiveWriter", "IndexedArchive"],
        "nbest": ["Hypothesis", "read_nbest", "write_nbest"],
        "textgrid": ["Interval", "Tier", "read_textgrid"],
        "timed_words": ["Word", "read_ctm", "write_words"],
        "trn": ["read_trn"],
    },
)
