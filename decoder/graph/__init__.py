"""Decoding graphs: from dictionary, HMM states and language model to an acceptor over HMM states and words.

Open monophone.py first, then cross_word.py; compiled_graph.py is the form that the search reads.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "lexicon": ["GraphOptions", "state_map_of"],
        "monophone": ["DecodingAcceptor", "build_monophone_graph"],
        "phone_models": ["PhoneModels", "distil", "from_trees"],
        "triphone": ["build_triphone_graph", "has_context"],
        "graph_file": ["load_graph", "save_graph"],
        "compiled_graph": ["precompile"],
        "transitions": ["estimate_transitions"],
    },
)
