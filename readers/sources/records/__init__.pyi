# From the table in __init__.py, by `python -m tests.structure.test_faces`
from readers.sources.records.binary_reader import BinaryReader as BinaryReader
from readers.sources.records.binary_reader import BinaryReaderOptions as BinaryReaderOptions
from readers.sources.records.record_cache import CachedSource as CachedSource
from readers.sources.records.record_cache import CachedStream as CachedStream
from readers.sources.records.record_cache import RecordCache as RecordCache
from readers.sources.records.record_cache import open_cache as open_cache
from readers.sources.records.records import RecordOrder as RecordOrder
from readers.sources.records.records import RecordReader as RecordReader
from readers.sources.records.records import RecordStream as RecordStream
from readers.sources.records.records import SelectionOptions as SelectionOptions
from readers.sources.records.uci_options import LabelMapOptions as LabelMapOptions
from readers.sources.records.uci_options import UCIBlockOptions as UCIBlockOptions
from readers.sources.records.uci_options import UCILabelOptions as UCILabelOptions
from readers.sources.records.uci_options import UCIReaderOptions as UCIReaderOptions
from readers.sources.records.uci_reader import UCIFastReader as UCIFastReader
