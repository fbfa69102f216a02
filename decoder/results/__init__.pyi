# From the table in __init__.py, by `python -m tests.structure.test_faces`
from decoder.results.live_recognition import Endpoint as Endpoint
from decoder.results.live_recognition import Recognition as Recognition
from decoder.results.live_recognition import RecognitionEvent as RecognitionEvent
from decoder.results.live_recognition import StreamStage as StreamStage
