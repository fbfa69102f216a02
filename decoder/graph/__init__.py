"""Decoding graphs: H o C o L as an acceptor over HMM states and words, and its compiled form.

Open monophone.py first, then triphone.py and cross_word.py for cross-word triphones; both optimise with OpenFst
(openfst.py, push.py).  compiled_graph.py is the form that the search reads, graph_file.py its file.  transcript.py
builds the graph of one transcript for forced alignment.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "lexicon": ["state_map_of"],
        "options": ["GraphOptions"],
        "monophone": ["DecodingAcceptor", "build_monophone_graph"],
        "phone_models": ["PhoneModels", "distil", "from_trees"],
        "triphone": ["build_triphone_graph", "has_context"],
        "graph_file": ["GraphDefaults", "load_defaults", "load_graph", "save_defaults", "save_graph"],
        "compiled_graph": ["DecodingGraph", "GraphArrays", "precompile"],
        "transitions": ["TransitionEstimate", "estimate_transitions"],
        "transcript": ["TranscriptGraph", "TranscriptGraphs", "TranscriptUnit"],
    },
)
