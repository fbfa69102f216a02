"""`argonaut align`: the times of the words and phones of a corpus.

recordings.py divides a corpus into recordings, aligning.py aligns one recording, results.py holds what was found and
keeps it for the next run, output.py writes it in the formats of other programs.  Open aligning.py first.
"""
