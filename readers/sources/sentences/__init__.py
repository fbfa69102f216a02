"""Readers of sentences: LMSequenceReader, LUSequenceReader, and pairs of sentences for an encoder and a decoder.

Open sentences.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "conditions": ["ConditionOptions"],
        "lm_sequence_reader": ["LMLabelOptions", "LMSequenceOptions", "LMSequenceReader"],
        "lu_sequence_reader": ["LULabelOptions", "LUSequenceOptions", "LUSequenceReader"],
        "noise": ["Noise"],
        "pair_reader": ["PairReader"],
        "sentences": ["SentenceOrder", "SentenceReader", "WordStream"],
    },
)
