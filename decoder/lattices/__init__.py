"""Lattices after the search: posteriors, consensus, rescoring."""
