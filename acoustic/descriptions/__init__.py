"""From text to networks: the network description language (ndl/), the model editing language (mel/) and predefined
networks (builders/).

Open `ndl/__init__.py` first.
"""
