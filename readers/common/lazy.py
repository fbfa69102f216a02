"""Public names of a package, imported from their modules on first use (PEP 562).

The stub of a package, `__init__.pyi`, declares them, for type checkers, editors and `face` alike.
"""

import functools
import importlib
from collections.abc import Callable
from types import FunctionType, UnionType
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
        Imports the module that defines a name and returns its value; raises AttributeError for other names.  A job, a
        function with the parameter `options`, raises TypeError for options of another class.
    """
    # Without pathlib and re, `import argonaut` takes a tenth of the time.
    with open(f"{file.rpartition('.')[0]}.pyi", encoding="utf-8") as stub:  # noqa: PTH123
        words = [line.split() for line in stub if line.startswith("from ")]
    homes = {name: module for _, module, _, name, _, _ in words}

    def getter(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(homes[name]), name)
        is_job = isinstance(value, FunctionType) and isinstance(_options_of(value), type | UnionType)
        return _with_checked_options(value, package) if is_job else value

    return sorted(homes), getter


def _options_of(function: FunctionType) -> Any:
    """Return the type of the parameter `options`, None without one."""
    code = function.__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return function.__annotations__.get("options") if "options" in parameters else None


@functools.cache
def _with_checked_options(job: FunctionType, package: str) -> Callable[..., Any]:
    """Return a job that refuses what are no options for it, in place of a missing attribute somewhere inside."""
    kind = _options_of(job)
    position = job.__code__.co_varnames.index("options")
    absent = object()  # left out: the job itself says what is missing

    @functools.wraps(job)
    def checked(*arguments: Any, **keywords: Any) -> Any:
        options = arguments[position] if position < len(arguments) else keywords.get("options", absent)
        if options is not absent and not isinstance(options, kind):
            text = "None" if options is None else type(options).__name__
            raise TypeError(f"{job.__name__}: options is {text}; expected {getattr(kind, '__name__', kind)}")
        return job(*arguments, **keywords)

    checked.__module__ = package  # where pickle finds it
    return checked
