"""Gaussian mixture HMMs: flat start from features and transcripts, and scores of states.

Open training.py first; models.py scores frames, kernels.py is compiled, statistics.py estimates, shards.py is the
work on a part of the data; job.py writes an alignment and models, pictures.py
draws the passes.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
