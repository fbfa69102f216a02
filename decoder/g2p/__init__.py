"""Grapheme to phoneme conversion: guesses the pronunciations of words that a dictionary lacks.

Open job.py, and model.py first: the model and its file.  training.py and alignment.py train it on a dictionary,
network_training.py a network beside it, which tagger.py describes; search_kernels.py finds the most probable phones of
a word; evaluation.py measures errors.  completion.py adds words to a dictionary: all guesses are made there.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
