"""Training by several jobs: parameter averaging (Povey, Zhang and Khudanpur, 2015, section 3) and summed gradients.

Open learner.py first, then job.py; data_parallel.py sums gradients.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
