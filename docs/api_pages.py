"""Writes the API pages: one page for each package with public names, from its `__all__` and its docstrings."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

PACKAGES = ("readers", "features", "acoustic", "decoder")


def write_api_pages(directory: Path) -> None:
    """Write index.rst and a page per package; a page that is already up to date is left alone."""
    homes = _homes(faces())
    pages = {face.__name__: "\n".join(_page(face, homes)) for face in faces()}
    pages["index"] = "\n".join(_index())
    directory.mkdir(parents=True, exist_ok=True)
    for path in directory.glob("*.rst"):
        if path.stem not in pages:
            path.unlink()
    for name, text in pages.items():
        path = directory / f"{name}.rst"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


@cache
def faces() -> list[ModuleType]:
    """The packages that have public names, every package before its subpackages."""
    found = []
    for name in PACKAGES:
        package = importlib.import_module(name)
        inside = pkgutil.walk_packages(package.__path__, f"{name}.")
        names = [name, *sorted(one.name for one in inside if one.ispkg)]
        found += [face for face in map(importlib.import_module, names) if getattr(face, "__all__", [])]
    return found


def _index() -> Iterator[str]:
    yield from _title("Python interface")
    yield "Import public names from the package that lists them on these pages.\n"
    yield from _contents(PACKAGES)


def _page(face: ModuleType, homes: dict[tuple[str, str], str]) -> Iterator[str]:
    yield from _title(face.__name__)
    yield f".. automodule:: {face.__name__}\n   :no-members:\n"
    elsewhere = [name for name in face.__all__ if homes[face.__name__, name] != face.__name__]
    if elsewhere:
        yield "Also available from this package:\n"
        yield from (f"- :py:obj:`{homes[face.__name__, name]}.{name}`" for name in elsewhere)
        yield ""
    for name in face.__all__:
        if name not in elsewhere:
            yield _directive(f"{face.__name__}.{name}", getattr(face, name))
    if face.__name__ in PACKAGES:
        inside = [one.__name__ for one in faces() if one.__name__.startswith(f"{face.__name__}.")]
        yield from _contents(f"{name.partition('.')[2]} <{name}>" for name in inside)


def _directive(name: str, value: object) -> str:
    if inspect.isclass(value):
        return f".. autoclass:: {name}\n"
    if inspect.isroutine(value):
        return f".. autofunction:: {name}\n"
    return f".. autodata:: {name}\n   :no-value:\n"


def _homes(found: list[ModuleType]) -> dict[tuple[str, str], str]:
    """(package, public name) -> the package whose page describes it: the nearest to the defining module."""
    homes = {}
    for face in found:
        for name in face.__all__:
            value = getattr(face, name)
            setattr(face, name, value)  # autodoc reads the package's __dict__, not its __getattr__
            module = getattr(value, "__module__", face.__name__)
            holders = [other.__name__ for other in found if getattr(other, name, None) is value]
            homes[face.__name__, name] = max(holders, key=lambda holder: (module.startswith(holder), len(holder)))
    return homes


def _contents(names: Iterable[str]) -> Iterator[str]:
    yield ".. toctree::\n"
    yield from (f"   {name}" for name in names)
    yield ""


def _title(text: str) -> Iterator[str]:
    yield f"{text}\n{'=' * len(text)}\n"
