"""Systems of recipe an4 that are trained with lattice-free MMI; see run.py."""
