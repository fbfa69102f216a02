"""HMM topology, decoding graphs, language models, search, lattices and scoring."""
