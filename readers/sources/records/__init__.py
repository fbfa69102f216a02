"""Readers of records (independent examples), as text or in a binary cache: UCIFastReader and BinaryReader.

Open records.py first: a subclass of its RecordReader is the shortest way to write a new reader.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
