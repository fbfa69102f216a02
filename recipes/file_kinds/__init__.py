"""What a file is and contains.

Open detection.py first, which tells kinds apart, text_kinds.py those of text; SUMMARIES there names the function beside
each reader that sums a file up.  The other modules do so for files without a reader of their own.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
