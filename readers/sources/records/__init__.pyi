# From the table in __init__.py, by `python -m tests.structure.test_faces`
from readers.sources.records.binary_reader import BinaryReader as BinaryReader
from readers.sources.records.record_cache import CachedSource as CachedSource
from readers.sources.records.record_cache import CachedStream as CachedStream
from readers.sources.records.record_cache import RecordCache as RecordCache
from readers.sources.records.record_cache import open_cache as open_cache
from readers.sources.records.records import RecordOrder as RecordOrder
from readers.sources.records.records import RecordReader as RecordReader
from readers.sources.records.records import RecordStream as RecordStream
from readers.sources.records.uci_reader import UCIFastReader as UCIFastReader
