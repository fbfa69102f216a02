"""Arithmetic on matrices: an array version and a compiled version of each kernel."""
