# From the table in __init__.py, by `python -m tests.structure.test_faces`
from acoustic.training.state.checkpoint import Checkpoint as Checkpoint
from acoustic.training.state.checkpoint import TrainingFiles as TrainingFiles
