"""Public names of a package, imported from their modules on first use (PEP 562).

The stub of a package, `__init__.pyi`, declares them, for type checkers, editors and `face` alike.
"""

import importlib
from collections.abc import Callable
from typing import Any


def face(package: str, file: str) -> tuple[list[str], Callable[[str], Any]]:
    """Return `__all__` and `__getattr__` of a package.

    Parameters
    ----------
    package, file : str
        `__name__` and `__file__` of the package.  The stub beside the file has a line `from MODULE import NAME as NAME`
        for each public name.

    Returns
    -------
    names : list of str
        All public names, sorted.
    getter : callable
        Imports the module that defines a name and returns its value; raises AttributeError for other names.
    """
    # Without pathlib and re, `import argonaut` takes a tenth of the time.
    with open(f"{file.rpartition('.')[0]}.pyi", encoding="utf-8") as stub:  # noqa: PTH123
        words = [line.split() for line in stub if line.startswith("from ")]
    homes = {name: module for _, module, _, name, _, _ in words}

    def getter(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    return sorted(homes), getter
