"""Compiled kernels of the search (numba).  Open advance.py first: one frame of token passing."""
