from acoustic.training.reporting.log import read_history as read_history
