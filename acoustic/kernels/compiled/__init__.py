"""Kernels compiled with numba, float32 on the CPU."""
