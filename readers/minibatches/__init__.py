"""What a minibatch is, and what every reader and writer of minibatches derives from.

Open base.py first, then sequence_layout.py, which says how the columns of a minibatch hold sequences.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "base": ["Minibatch", "Reader", "Utterance", "Writer", "open_reader", "open_writer"],
        "indicators": ["Indicators"],
        "sequence_layout": ["SequenceLayout"],
        "sequence_pairs": ["PairLayout"],
    },
)
