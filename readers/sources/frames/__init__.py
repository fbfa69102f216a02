"""Readers of frames of utterances, HTKMLFReader, KaldiReader and Kaldi2Reader: context windows, randomisation, paging.

Open htk_mlf_reader.py first, then frame_reader.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
