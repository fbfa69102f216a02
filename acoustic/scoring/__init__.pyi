from acoustic.scoring.onnx_scorer import OnnxScorer as OnnxScorer
from acoustic.scoring.outputs import forward as forward
from acoustic.scoring.outputs import log_posteriors as log_posteriors
from acoustic.scoring.score_stream import ScoreStream as ScoreStream
from acoustic.scoring.scorer import AcousticScorer as AcousticScorer
from acoustic.scoring.window_scorer import PartScorer as PartScorer
from acoustic.scoring.window_scorer import WindowScorer as WindowScorer
from acoustic.scoring.word_scorer import WordScorer as WordScorer
