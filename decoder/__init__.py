"""Decoding: language models, decoding graphs, search, forced alignment, lattices and scoring.

The acoustic model is only a matrix of scaled log-likelihoods (HMM states, frames).  The subpackages, from the bottom
up: lm (n-gram models), graph and tying (decoding graphs, tied states), search (token passing), alignment, lattices;
scoring counts errors.  live_recognition.py recognises audio as it arrives; outputs.py writes labels and lattices.

Open search/decoder.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "live_recognition": ["Endpoint", "Recognition", "RecognitionEvent", "StreamStage"],
        "search.decoder": ["Decoder", "DecodingResult", "SearchOptions"],
        "graph.graph_file": ["load_graph"],
        "lm.language_model": ["LanguageModel"],
    },
)
