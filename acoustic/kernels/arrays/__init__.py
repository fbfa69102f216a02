"""Kernels written once in terms of `xp` (numpy or cupy)."""
