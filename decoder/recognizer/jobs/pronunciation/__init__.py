"""How well known words are pronounced: scores of phones, words and sentences, fitted to those of experts.

Open assessor.py first: the class PronunciationAssessor.  measures.py says what is measured of an alignment,
score_map.py is the regression, model.py the three maps in a file, fitting.py fits them and compares them with experts,
result.py writes scores; job.py and training_job.py are the two jobs.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
