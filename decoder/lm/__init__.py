"""N-gram language models: automata for the search, estimation from text, mixtures, word classes.

Open language_model.py first: the automaton and its step.  mapped_model.py opens ARPA files; collection.py interpolates
several models during the search; estimation.py, classes.py and mixing make new models.  estimation_job.py and
network.py have the jobs, which read texts (texts.py).
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
