"""Training by several jobs: parameter averaging (Povey, Zhang and Khudanpur, 2015, section 3) and summed gradients.

Open learner.py first, then job.py; data_parallel.py sums gradients.
"""

from acoustic.training.parallel.data_parallel import DataParallelLearner
from acoustic.training.parallel.learner import ParallelLearner
from acoustic.training.parallel.options import ParallelOptions, parallel_notes, parallel_options
from acoustic.training.parallel.shares import check_divisible

__all__ = [
    "DataParallelLearner",
    "ParallelLearner",
    "ParallelOptions",
    "check_divisible",
    "parallel_notes",
    "parallel_options",
]
