"""Procedures besides gradient descent: precomputation, adaptation, layer-wise growth, mixing-up, model combination.

Each file is one procedure; open precompute.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "combination": ["combine"],
        "mixing_up": ["mix_up"],
        "layerwise": ["grow"],
    },
)
