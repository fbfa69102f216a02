"""Outputs of networks for utterances and sentences: scaled log-likelihoods, probabilities of words, beam search.

Open scorer.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "scorer": ["AcousticScorer"],
        "onnx_scorer": ["OnnxScorer"],
        "score_stream": ["ScoreStream"],
        "word_scorer": ["WordScorer"],
    },
)
