"""Reports of a training: log lines in the wording of CNTK, progress, history file and plots.

Open log.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
