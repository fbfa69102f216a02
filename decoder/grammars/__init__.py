"""Recognition with grammars: from a network of words to a decoding graph over a set of phone models.

Open grammar_graph.py first.  reading.py opens grammars of any notation, word_acceptor.py removes empty arcs and
determinises, vocabulary.py looks words up, phone_acceptor.py writes out the HMM states, phone_loop.py has the loop for
`[unk]`.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "grammar_graph": ["GrammarOptions", "build_grammar_graph", "build_phone_loop"],
        "reading": ["GRAMMAR_KINDS", "open_grammar"],
    },
)
