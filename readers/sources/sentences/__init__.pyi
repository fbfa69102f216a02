# From the table in __init__.py, by `python -m tests.structure.test_faces`
from readers.sources.sentences.conditions import ConditionOptions as ConditionOptions
from readers.sources.sentences.lm_sequence_reader import LMLabelOptions as LMLabelOptions
from readers.sources.sentences.lm_sequence_reader import LMSequenceOptions as LMSequenceOptions
from readers.sources.sentences.lm_sequence_reader import LMSequenceReader as LMSequenceReader
from readers.sources.sentences.lu_sequence_reader import LULabelOptions as LULabelOptions
from readers.sources.sentences.lu_sequence_reader import LUSequenceOptions as LUSequenceOptions
from readers.sources.sentences.lu_sequence_reader import LUSequenceReader as LUSequenceReader
from readers.sources.sentences.noise import Noise as Noise
from readers.sources.sentences.pair_reader import PairReader as PairReader
from readers.sources.sentences.sentences import SentenceOrder as SentenceOrder
from readers.sources.sentences.sentences import SentenceReader as SentenceReader
from readers.sources.sentences.sentences import WordStream as WordStream
