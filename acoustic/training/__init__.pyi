# From the table in __init__.py, by `python -m tests.structure.test_faces`
from acoustic.training.configuration import training_options as training_options
from acoustic.training.evaluation import EvaluationOptions as EvaluationOptions
from acoustic.training.evaluation import EvaluationResult as EvaluationResult
from acoustic.training.evaluation import EvaluationTotals as EvaluationTotals
from acoustic.training.evaluation import evaluate as evaluate
from acoustic.training.options import EpochOptions as EpochOptions
from acoustic.training.options import TrainingOptions as TrainingOptions
from acoustic.training.sgd import EpochResult as EpochResult
from acoustic.training.sgd import TrainingResult as TrainingResult
from acoustic.training.sgd import train as train
from acoustic.training.update import Updater as Updater
