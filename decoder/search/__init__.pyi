# From the table in __init__.py, by `python -m tests.structure.test_faces`
from decoder.search.batch import in_order as in_order
from decoder.search.decoder import Decoder as Decoder
from decoder.search.decoder import DecodingResult as DecodingResult
from decoder.search.hotword_options import GuessedHotwordOptions as GuessedHotwordOptions
from decoder.search.hotword_options import HotwordOptions as HotwordOptions
from decoder.search.lattice import WordLattice as WordLattice
from decoder.search.options import SearchOptions as SearchOptions
from decoder.search.path import SearchPath as SearchPath
from decoder.search.path import WordTimes as WordTimes
from decoder.search.search_stream import PartialResult as PartialResult
from decoder.search.search_stream import SearchStream as SearchStream
