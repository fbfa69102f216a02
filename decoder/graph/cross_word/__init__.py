"""Cross-word triphones: their states in context, the acceptor of a dictionary, and new words in a compiled graph."""
