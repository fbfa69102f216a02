"""Writers of node outputs, one per file: HTK parameter files, Kaldi archives, sentences, text.

Open text_writer.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
