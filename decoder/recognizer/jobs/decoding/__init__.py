"""Jobs on lists and streams with a compiled graph: compile it, decode, align with transcripts, recognise a stream.

Open job.py first, then utterances.py and alignment.py, which process one utterance, and stream.py.  options.py declares
the options, opening.py opens graph and language models, scores.py, network.py and audio.py the scores, shards.py
divides a list among processes, fit.py notices an acoustic weight that is far off.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
