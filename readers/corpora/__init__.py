"""Corpora: recordings with transcripts and speakers, read from folders, Kaldi directories and other manifests.

`import_corpus` reads the files of other tools, `write_corpus` and `read_corpus` the directory that `argonaut import`
makes.  Open corpus.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
