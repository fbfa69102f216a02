"""ELAN's annotation files (EAF), read, changed and written; open document.py first.

parsing.py knows their XML, contents.py what it says, times.py the times of annotations without any, and editing.py how
to change a file and leave the rest as it is.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
