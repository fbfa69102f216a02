"""Public names of a package, imported from their modules on first use (PEP 562)."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def face(package: str, modules: Mapping[str, Iterable[str]]) -> tuple[list[str], Callable[[str], Any]]:
    """Return `__all__` and `__getattr__` for a package whose public names are defined in its modules.

    Parameters
    ----------
    package : str
        `__name__` of the package.
    modules : mapping of str to iterable of str
        For each module, relative to the package, the public names that it defines.

    Returns
    -------
    names : list of str
        All public names, sorted.
    getter : callable
        Imports the module that defines a name and returns its value; raises AttributeError for other names.
    """
    homes = {name: module for module, names in modules.items() for name in names}

    def getter(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return sorted(homes), getter
