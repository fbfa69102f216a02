"""Adaptation of a recogniser to the speech and the words of its user.

Open job.py first; options.py declares the options.  text.py reads texts, language.py adapts a language model to one,
and words.py dictionary and graph, too; speech.py aligns a corpus, network.py adapts the network to it.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
