"""Token passing over a decoding graph (CNTK book, chapter 6), for whole utterances and for streams.

Open decoder.py first, then kernels/advance.py, which advances the tokens over one frame.  search_graph.py and
lm_ahead.py prepare the arrays of the kernels, and table_file.py stores them; path.py and lattice.py read the results;
search_stream.py decodes scores as they arrive; batch.py decodes many utterances in threads.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
