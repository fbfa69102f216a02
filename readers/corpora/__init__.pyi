# From the table in __init__.py, by `python -m tests.structure.test_faces`
from readers.corpora.corpus import AudioHeaders as AudioHeaders
from readers.corpora.corpus import Corpus as Corpus
from readers.corpora.corpus import Utterance as Utterance
from readers.corpora.directory import feature_pairs as feature_pairs
from readers.corpora.directory import read_corpus as read_corpus
from readers.corpora.directory import write_corpus as write_corpus
from readers.corpora.examination import Examination as Examination
from readers.corpora.examination import Share as Share
from readers.corpora.examination import examine as examine
from readers.corpora.importing import KINDS as KINDS
from readers.corpora.importing import import_corpus as import_corpus
