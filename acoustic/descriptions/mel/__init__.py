"""The model editing language: scripts that edit trained networks (CNTK book, section 4.2).

Open `commands.py` first, where each command is a function; `parse.py` reads a script and `script.py` runs it.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
