"""Readers of sentences: LMSequenceReader, LUSequenceReader, and pairs of sentences for an encoder and a decoder.

Open sentences.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
