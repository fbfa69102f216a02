from readers.sources.arrays.array_reader import ArrayReader as ArrayReader
from readers.sources.arrays.options import ArrayFeatures as ArrayFeatures
from readers.sources.arrays.options import ArrayLabels as ArrayLabels
from readers.sources.arrays.options import ArrayReaderOptions as ArrayReaderOptions
