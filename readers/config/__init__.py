"""The configuration language (CNTK book, chapter 3), whose syntax NDL and MEL share, HCopy configurations,
and records of how features were computed.

Values are stored as text and converted when they are read.  Open config.py first, then syntax.py and scope.py.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
