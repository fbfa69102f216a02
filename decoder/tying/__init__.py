"""State tying: from state alignments and features to tied triphone states, as decision trees and HTK models.

Open job.py, and system.py first; runs.py reads alignments as triphones, statistics.py collects Gaussians,
questions.py makes questions from them, trees.py grows the trees.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
