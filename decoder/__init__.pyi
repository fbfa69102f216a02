# From the table in __init__.py, by `python -m tests.structure.test_faces`
from decoder.graph.graph_file import load_graph as load_graph
from decoder.lm.language_model import LanguageModel as LanguageModel
from decoder.recognizer.recognizer import Recognizer as Recognizer
from decoder.recognizer.transcript import Transcript as Transcript
from decoder.recognizer.transcript import Word as Word
from decoder.results.live_recognition import Endpoint as Endpoint
from decoder.results.live_recognition import Recognition as Recognition
from decoder.results.live_recognition import RecognitionEvent as RecognitionEvent
from decoder.results.live_recognition import StreamStage as StreamStage
from decoder.search.decoder import Decoder as Decoder
from decoder.search.decoder import DecodingResult as DecodingResult
from decoder.search.options import SearchOptions as SearchOptions
