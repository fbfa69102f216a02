"""File formats, the configuration language and the sources of minibatches.

This package reads and writes every file that other tools also read or write.  It contains no signal processing,
networks or search.  Open htk/parameter_file.py first: all other readers and writers follow its pattern.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
