"""Runs every command on a tiny system that is made for the purpose, so that numba compiles all kernels.

Open tasks.py first: it lists what runs.
"""
