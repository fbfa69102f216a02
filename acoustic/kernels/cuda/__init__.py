"""Kernels in CUDA C++ for a GPU: each operation of the nodes in one launch.

source.py has the kernels and module.py launches them; elementwise.py calls them as ArrayKernels calls `xp`.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
