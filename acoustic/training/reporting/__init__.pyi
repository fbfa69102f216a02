from acoustic.training.reporting.display import Callbacks as Callbacks
from acoustic.training.reporting.log import read_history as read_history
