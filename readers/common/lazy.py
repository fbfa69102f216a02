"""Faces of packages: public names that are imported from their modules when they are first asked for (PEP 562)."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def face(package: str, modules: Mapping[str, Iterable[str]]) -> tuple[list[str], Callable[[str], Any]]:
    """The `__all__` and `__getattr__` of a package whose public names are defined in its modules.

    Parameters
    ----------
    package : str
        The package's `__name__`.
    modules : mapping of str to iterable of str
        Module, relative to the package, -> the public names that it defines.

    Returns
    -------
    names : list of str
        All public names, sorted.
    getter : callable
        Imports the module of a name and returns the name's value; AttributeError for other names.
    """
    homes = {name: module for module, names in modules.items() for name in names}

    def getter(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return sorted(homes), getter
