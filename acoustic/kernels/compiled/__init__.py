"""Kernels compiled with numba, for float32 on the CPU.

A module such as elementwise.py checks and prepares the operands; its loops are in elementwise_loops.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
