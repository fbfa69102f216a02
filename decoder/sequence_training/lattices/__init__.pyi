# From the table in __init__.py, by `python -m tests.structure.test_faces`
from decoder.sequence_training.lattices.job import DenominatorResult as DenominatorResult
from decoder.sequence_training.lattices.job import make_lattices as make_lattices
from decoder.sequence_training.lattices.options import DenominatorOptions as DenominatorOptions
from decoder.sequence_training.lattices.options import TranscriptDictionary as TranscriptDictionary
