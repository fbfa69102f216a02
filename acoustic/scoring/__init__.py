"""Outputs of networks for utterances and sentences: scaled log-likelihoods, word probabilities, beam search.

Open `scorer.py` first: `AcousticScorer` computes the scores that the decoder takes.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
