"""Audio files and streams: WAV, FLAC, NIST SPHERE, HTK waveforms, raw samples and others.

Samples are on the scale of 16-bit integers.  Open audio_file.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
