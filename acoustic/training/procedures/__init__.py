"""Procedures besides gradient descent: statistics, adaptation, layer-wise training, mixing-up, model combination.

Each file holds one procedure; open precompute.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "combination": ["CombinationResult", "combine"],
        "mixing_up": ["mix_up"],
        "layerwise": ["grow"],
        "adaptation": ["ReferenceModel"],
    },
)
