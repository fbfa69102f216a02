"""Minibatches, and the base classes of all readers and writers.

Open base.py first, then sequence_layout.py, which defines how sequences are arranged in the columns of a minibatch.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "base": ["Minibatch", "Reader", "Utterance", "Writer", "open_reader", "open_writer"],
        "excerpts": ["ExcerptOptions", "Excerpts"],
        "indicators": ["Indicators"],
        "masks": ["MaskOptions"],
        "sequence_layout": ["SequenceLayout"],
        "sequence_pairs": ["PairLayout"],
        "randomisation": ["ChunkPlan"],
        "supervision": [
            "ChainSupervision",
            "DenominatorGraph",
            "LatticeSupervision",
            "NumeratorGraph",
            "PlacedSupervision",
        ],
        "sequence_packing": ["PackedSequences", "SequencePiece"],
    },
)
