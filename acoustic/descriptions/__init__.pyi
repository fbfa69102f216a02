# From the table in __init__.py, by `python -m tests.structure.test_faces`
from acoustic.descriptions.opening import NetworkSource as NetworkSource
from acoustic.descriptions.opening import open_network as open_network
