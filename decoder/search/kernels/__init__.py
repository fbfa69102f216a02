"""Compiled kernels of the search."""
