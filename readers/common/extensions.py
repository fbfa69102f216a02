"""Readers, writers and node types from outside the project: installed packages, and Python files that the user names.

A configuration cannot name code.  Modules come from two places only: packages that are installed and declare an entry
point in the group `argonaut.extensions`, and files in the environment variable ARGONAUT_EXTENSIONS, to which the
option `--extension FILE.py` of every command adds.  Modules are imported when a name is not one of the project's own.
"""

import os
import sys
import zlib
from functools import cache
from pathlib import Path
from types import ModuleType

from readers.errors import ConfigError

GROUP = "argonaut.extensions"
VARIABLE = "ARGONAUT_EXTENSIONS"  # paths of Python files, separated as in PATH; worker processes inherit them
OPTION = "--extension"
_imported: dict[str, bytes] = {}  # contents of imported files, by path


def add_extension(path: str) -> None:
    """Let this process and its children import a Python file as an extension.  Raises ConfigError if it is none."""
    _check_file(path, path)
    paths = os.environ.get(VARIABLE, "")
    os.environ[VARIABLE] = f"{paths}{os.pathsep}{path}" if paths else path


def extension_modules() -> list[ModuleType]:
    """Import all extensions and return their modules.

    Raises
    ------
    ConfigError
        If one of them cannot be imported.
    """
    paths = [path for path in os.environ.get(VARIABLE, "").split(os.pathsep) if path]
    return [*_packages(), *(_file(os.path.realpath(path), path) for path in paths)]


def fingerprint() -> str:
    """Return a checksum of the named Python files as this process has imported, or would import them."""
    import hashlib

    paths = filter(None, os.environ.get(VARIABLE, "").split(os.pathsep))
    contents = [_imported.get(os.path.realpath(path)) or _content(path) for path in paths]
    return hashlib.sha256(repr(contents).encode()).hexdigest()


def extensions_of(base: type) -> dict[str, type]:
    """Return the classes that extensions derive from `base`, by name.  Raises ConfigError."""
    classes = {}
    for module in extension_modules():
        for name, value in vars(module).items():
            is_own = isinstance(value, type) and f"{value.__module__}.".startswith(f"{module.__name__}.")
            if is_own and issubclass(value, base) and value is not base:
                classes[name] = value
    return classes


@cache
def _packages() -> list[ModuleType]:
    import importlib.metadata

    modules = []
    for point in importlib.metadata.entry_points(group=GROUP):
        package = point.dist.name if point.dist else "a package"
        if ":" in point.value:
            raise ConfigError(f"extension of {package}: {point.value}; expected the name of a module, without a class")
        try:
            modules.append(point.load())
        except Exception as fault:  # foreign code may raise anything
            raise _no_module(f"extension of {package}: {point.value}", fault) from fault
    return modules


@cache
def _file(path: str, said: str) -> ModuleType:
    import importlib.util

    _check_file(path, said)
    _imported[path] = _content(path)
    name = f"argonaut_extension_{Path(path).stem}_{zlib.crc32(os.fsencode(path)):08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as fault:
        del sys.modules[name]
        raise _no_module(f"{OPTION} {said}", fault) from fault
    return module


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _check_file(path: str, said: str) -> None:
    if not path.endswith(".py") or not Path(path).is_file():
        raise ConfigError(f"{OPTION} {said}: no such Python file; expected the path of a .py file")


def _no_module(where: str, fault: Exception) -> ConfigError:
    return ConfigError(f"{where}: {type(fault).__name__}: {fault}; expected a module that can be imported")
