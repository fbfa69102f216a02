"""Minibatches: the reader interface, sequence layout, randomisation."""
