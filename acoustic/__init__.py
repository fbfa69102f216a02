"""The computational network: nodes, differentiation, training; knows nothing of words, graphs or search."""
