"""Decoding graphs: from dictionary, HMM states and language model to an acceptor over HMM states and words."""

from decoder.graph.lexicon import GraphOptions, state_map_of
from decoder.graph.monophone import DecodingAcceptor, build_monophone_graph
from decoder.graph.phone_models import PhoneModels, distil, from_trees
from decoder.graph.triphone import build_triphone_graph, has_context

__all__ = [
    "DecodingAcceptor",
    "GraphOptions",
    "PhoneModels",
    "build_monophone_graph",
    "build_triphone_graph",
    "distil",
    "from_trees",
    "has_context",
    "state_map_of",
]
