"""Predefined networks: the kinds of SimpleNetworkBuilder (CNTK book, section 3.2.1) and encoder-decoder networks.

Open `simple.py` first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
