# From the table in __init__.py, by `python -m tests.structure.test_faces`
from decoder.recognizer.jobs.decoding.compilation import compile_graph as compile_graph
from decoder.recognizer.jobs.decoding.compilation import store_defaults as store_defaults
from decoder.recognizer.jobs.decoding.job import DecodeResult as DecodeResult
from decoder.recognizer.jobs.decoding.job import align_transcripts as align_transcripts
from decoder.recognizer.jobs.decoding.job import decode as decode
from decoder.recognizer.jobs.decoding.options import AcousticOptions as AcousticOptions
from decoder.recognizer.jobs.decoding.options import CompilingOptions as CompilingOptions
from decoder.recognizer.jobs.decoding.options import DecodeDictionary as DecodeDictionary
from decoder.recognizer.jobs.decoding.options import DecodeOptions as DecodeOptions
from decoder.recognizer.jobs.decoding.options import DecodeOutputOptions as DecodeOutputOptions
from decoder.recognizer.jobs.decoding.options import DecodeSearchOptions as DecodeSearchOptions
from decoder.recognizer.jobs.decoding.options import StreamOptions as StreamOptions
from decoder.recognizer.jobs.decoding.options import TranscriptOptions as TranscriptOptions
from decoder.recognizer.jobs.decoding.stream import decode_stream as decode_stream
