# From the table in __init__.py, by `python -m tests.structure.test_faces`
from readers.language.arpa import Arpa as Arpa
from readers.language.arpa import ArpaOrder as ArpaOrder
from readers.language.arpa import read_arpa as read_arpa
from readers.language.arpa import write_arpa as write_arpa
from readers.language.att import Acceptor as Acceptor
from readers.language.att import read_acceptor as read_acceptor
from readers.language.att import write_acceptor as write_acceptor
from readers.language.cmudict import CmuEntry as CmuEntry
from readers.language.cmudict import read_cmudict as read_cmudict
from readers.language.labelled_text import read_columns as read_columns
from readers.language.labelled_text import read_parallel as read_parallel
from readers.language.vocabulary import VocabularyWord as VocabularyWord
from readers.language.vocabulary import read_vocabulary as read_vocabulary
from readers.language.vocabulary import write_vocabulary as write_vocabulary
from readers.language.vocabulary_record import VocabularyRecord as VocabularyRecord
from readers.language.word_classes import read_word_classes as read_word_classes
