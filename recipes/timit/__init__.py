"""TIMIT phone recognition, on the LDC disc or on a synthesised corpus of the same shape."""
