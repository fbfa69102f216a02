# From the table in __init__.py, by `python -m tests.structure.test_faces`
from acoustic.training.reporting.log import read_history as read_history
