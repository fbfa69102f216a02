from acoustic.kernels.lattice_free.objective import LatticeFree as LatticeFree
from acoustic.kernels.lattice_free.objective import Objective as Objective
