"""Numerator and denominator graphs of lattice-free MMI."""
