"""Feature extraction with HTK's arithmetic, FBANK, MELSPEC, MFCC and PLP, and the HCopy job.

This package contains no networks or search.  Open extraction.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
