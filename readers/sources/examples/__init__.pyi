from readers.sources.examples.example_archive import ExampleArchive as ExampleArchive
from readers.sources.examples.example_reader import ExampleReader as ExampleReader
from readers.sources.examples.example_reader import ExampleReaderOptions as ExampleReaderOptions
from readers.sources.examples.example_writer import write_examples as write_examples
