# From the table in __init__.py, by `python -m tests.structure.test_faces`
from acoustic.kernels.compiled.elementwise import CompiledKernels as CompiledKernels
