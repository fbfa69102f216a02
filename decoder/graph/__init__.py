"""Decoding graphs: from dictionary, HMM states and language model to an acceptor over HMM states and words."""

from decoder.graph.lexicon import GraphOptions, state_map_of
from decoder.graph.monophone import MonophoneGraph, build_monophone_graph

__all__ = ["GraphOptions", "MonophoneGraph", "build_monophone_graph", "state_map_of"]
