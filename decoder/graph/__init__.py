"""Decoding graphs: H o C o L as an acceptor over HMM states and words, and its compiled form.

Open monophone.py first, then triphone.py and cross_word/ for cross-word triphones; both optimise with OpenFst
(openfst.py, push.py).  compiled_graph.py is the form that the search reads, graph_file.py its file.  transcript.py
builds the graph of one transcript for forced alignment.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
