"""Decoding: language models, decoding graphs, search, forced alignment, lattices and scoring.

The acoustic model is only a matrix of scaled log-likelihoods (HMM states, frames).  The subpackages, from the bottom
up: storage (files of arrays that are mapped into memory), lm (n-gram models), graph and tying (decoding graphs, tied
states), search (token passing), alignment, lattices; results (labels, lattices, recognition of audio as it arrives);
gaussians trains models from transcripts; sequence_training makes what sequence criteria need; scoring counts errors.

recognizer assembles everything to one object, from audio to words.

Open recognizer/recognizer.py first, then search/decoder.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
