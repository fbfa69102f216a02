"""Augmentation of training data: copies of recordings with another speed or volume, with noise or reverberation.

Open settings.py first; mixing.py has the arithmetic, parallel.py works through a list, job.py writes lists.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
