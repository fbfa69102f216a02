"""From text to networks: the network description language (ndl/), the model editing language (mel/) and predefined
networks (builders/).

`open_network` returns a network of either, or of a model file. Open `ndl/__init__.py` first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
