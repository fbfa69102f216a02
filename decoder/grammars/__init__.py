"""Recognition with grammars: from a network of words to a decoding graph over a set of phone models.

job.py builds any decoding graph from files, of a language model or a grammar.  Open grammar_graph.py first for those of
grammars.  reading.py opens grammars of any notation, word_acceptor.py removes empty arcs and
determinises, vocabulary.py looks words up, phone_acceptor.py writes out the HMM states, phone_loop.py has the loop for
`[unk]`.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
