"""One pass over a network."""
