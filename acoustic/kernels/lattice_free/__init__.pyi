# From the table in __init__.py, by `python -m tests.structure.test_faces`
from acoustic.kernels.lattice_free.objective import LatticeFree as LatticeFree
from acoustic.kernels.lattice_free.objective import Objective as Objective
