from acoustic.training.parallel.data_parallel import DataParallelLearner as DataParallelLearner
from acoustic.training.parallel.learner import ParallelLearner as ParallelLearner
from acoustic.training.parallel.options import ParallelOptions as ParallelOptions
from acoustic.training.parallel.options import parallel_notes as parallel_notes
from acoustic.training.parallel.options import parallel_options as parallel_options
from acoustic.training.parallel.shares import check_divisible as check_divisible
