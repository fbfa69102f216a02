"""The computational network: nodes, differentiation, descriptions, training, scores.

This room knows nothing of words, graphs or search.  From the ground up: runtime, kernels, nodes, network, recurrence,
engine, descriptions, training, scoring, export, actions.  Open nodes/base.py first, then engine/engine.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "engine.engine": ["Engine"],
        "network.network": ["Network"],
        "network.model_file": ["load_model", "save_model"],
        "scoring.scorer": ["AcousticScorer"],
    },
)
