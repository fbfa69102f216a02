"""Token passing over a decoding graph (CNTK book, chapter 6), for whole utterances and for streams.

Open decoder.py first; what a frame does to the tokens is in kernels/advance.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "decoder": ["Decoder", "SearchOptions"],
        "search_stream": ["SearchStream"],
        "batch": ["in_order"],
    },
)
