from decoder.results.live_recognition import Endpoint as Endpoint
from decoder.results.live_recognition import Recognition as Recognition
from decoder.results.live_recognition import RecognitionEvent as RecognitionEvent
from decoder.results.live_recognition import StreamStage as StreamStage
