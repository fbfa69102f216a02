"""Training by several jobs with parameter averaging (Povey, Zhang and Khudanpur, 2015, section 3).

Open learner.py first, then job.py.
"""

from acoustic.training.parallel.learner import ParallelLearner
from acoustic.training.parallel.options import ParallelOptions, parallel_options

__all__ = ["ParallelLearner", "ParallelOptions", "parallel_options"]
