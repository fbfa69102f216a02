"""Language models, decoding graphs, search, alignment, lattices and scoring.

The acoustic model is seen as a matrix of scaled log-likelihoods (states, frames) only.  From the ground up: lm, graph,
tying, search, alignment, lattices; scoring by itself.  Open search/decoder.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "live_recognition": ["Endpoint", "Recognition"],
        "search.decoder": ["Decoder", "SearchOptions"],
        "graph.graph_file": ["load_graph"],
        "lm.language_model": ["LanguageModel"],
    },
)
