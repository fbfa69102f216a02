"""What sequence-discriminative training needs beside features: lattices, and the graphs of lattice-free MMI.

lattices makes denominator lattices by decoding; chain makes the graphs of lattice-free MMI.
"""
