# From the table in __init__.py, by `python -m tests.structure.test_faces`
from acoustic.recurrence.loop_node import Loop as Loop
