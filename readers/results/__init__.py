"""Output of recognisers: n-best lists, transcripts (trn), words with times (CTM, JSON, TextGrid, ELAN, subtitles).

tier_files.py reads tiers of annotations, of Praat (textgrid.py) and of ELAN (elan/).  indexed_archive.py keeps named
records of arrays, such as lattices.  Open timed_words.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
