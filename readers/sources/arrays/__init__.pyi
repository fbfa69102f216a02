# From the table in __init__.py, by `python -m tests.structure.test_faces`
from readers.sources.arrays.array_reader import ArrayReader as ArrayReader
from readers.sources.arrays.options import ArrayFeatures as ArrayFeatures
from readers.sources.arrays.options import ArrayLabels as ArrayLabels
from readers.sources.arrays.options import ArrayReaderOptions as ArrayReaderOptions
