"""Predefined networks: SimpleNetworkBuilder's kinds (CNTK book, section 3.2.1), and pairs of encoder and decoder.

Open simple.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "simple": ["SimpleNetworkOptions", "build_simple_network"],
    },
)
