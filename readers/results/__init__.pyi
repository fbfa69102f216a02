# From the table in __init__.py, by `python -m tests.structure.test_faces`
from readers.results.indexed_archive import ArchiveRecord as ArchiveRecord
from readers.results.indexed_archive import ArchiveWriter as ArchiveWriter
from readers.results.indexed_archive import IndexedArchive as IndexedArchive
from readers.results.nbest import Hypothesis as Hypothesis
from readers.results.nbest import read_nbest as read_nbest
from readers.results.nbest import write_nbest as write_nbest
from readers.results.textgrid import Interval as Interval
from readers.results.textgrid import Tier as Tier
from readers.results.textgrid import read_textgrid as read_textgrid
from readers.results.timed_words import Word as Word
from readers.results.timed_words import read_ctm as read_ctm
from readers.results.timed_words import write_words as write_words
from readers.results.trn import read_trn as read_trn
