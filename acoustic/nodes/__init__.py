"""Node types of computational networks, one file per family, and the class that they derive from.

This package is a catalogue. Open `base.py` first, then `elementwise.py` as a model for a node type; `registry.py`
looks a type up by its name.

Conventions in the docstrings of node types: *Parameters* are the operands and options of the type in the network
description language. X, Y, A, ... are operand values, V is the node's value, J the training criterion and ``G = dJ/dV``
the gradient that arrives at the node. ``M'`` is the transpose of M; products of matrices of one shape are element by
element. Shapes are (rows, columns): T means one column per frame, cols any number of columns. Where `infer_shape`
finds operands that do not fit, it raises ShapeError.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
