"""Computational networks: node types, automatic differentiation, network descriptions, training and scoring.

This package knows nothing of words, decoding graphs or search. Its subpackages, lowest layer first: `runtime`
(threads and BLAS), `kernels` (arithmetic), `nodes` (node types), `network` (graphs of nodes), `recurrence` (loops),
`engine` (forward and backward passes), `descriptions` (NDL, MEL and builders), `training`, `scoring`, `export` and
`actions` (the commands). Open `nodes/base.py` first, then `engine/engine.py`.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
