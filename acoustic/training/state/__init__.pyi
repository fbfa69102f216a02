from acoustic.training.state.checkpoint import Checkpoint as Checkpoint
from acoustic.training.state.checkpoint import TrainingFiles as TrainingFiles
