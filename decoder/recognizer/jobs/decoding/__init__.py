"""Jobs on lists and streams with a compiled graph: compile it, decode, align with transcripts, recognise a stream.

Open job.py first, then utterances.py, alignment.py and stream.py; options.py declares the options, opening.py opens
graph and language models, scores.py and network.py the scores, shards.py divides the list among processes.
"""
