"""Writes the API pages: one page for each package with public names, from its `__all__` and its docstrings."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from acoustic.nodes.option import REQUIRED
from acoustic.nodes.registry import registered_nodes

PACKAGES = ("readers", "features", "acoustic", "decoder")
WITH_BASES = ("decoder.recognizer.Recognizer",)  # classes with methods of a base class that has no page


def write_api_pages(directory: Path) -> None:
    """Write index.rst and a page per package; a page that is already up to date is left alone."""
    homes = _homes()
    pages = {name: "\n".join(_page(name, homes)) for name in faces()}
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
def faces() -> dict[str, dict[str, object]]:
    """Package -> its public names and their values, every package before its subpackages."""
    found = {}
    for room in PACKAGES:
        inside = pkgutil.walk_packages(importlib.import_module(room).__path__, f"{room}.")
        for name in [room, *sorted(one.name for one in inside if one.ispkg)]:
            package = importlib.import_module(name)
            values = {public: getattr(package, public) for public in getattr(package, "__all__", [])}
            vars(package).update(values)  # autodoc reads a module's __dict__ and does not call its __getattr__
            if values:
                found[name] = values
    return found


def _index() -> Iterator[str]:
    yield from _title("Python interface")
    yield "Import public names from the package that lists them on these pages.\n"
    yield from _contents(PACKAGES)


def _page(package: str, homes: dict[tuple[str, str], str]) -> Iterator[str]:
    yield from _title(package)
    yield f".. automodule:: {package}\n   :no-members:\n"
    elsewhere = [name for name in faces()[package] if homes[package, name] != package]
    if elsewhere:
        yield "Also available from this package:\n"
        yield from (f"- :py:obj:`{homes[package, name]}.{name}`" for name in elsewhere)
        yield ""
    for name, value in faces()[package].items():
        if name not in elsewhere:
            yield _directive(f"{package}.{name}", value)
    if package == "acoustic.nodes":
        yield ".. rubric:: Node types, as functions of the network description language\n"
        yield from map(_node_type, registered_nodes())
    if package in PACKAGES:
        inside = [name for name in faces() if name.startswith(f"{package}.")]
        yield from _contents(f"{name.partition('.')[2]} <{name}>" for name in inside)


def _directive(name: str, value: object) -> str:
    if inspect.isclass(value):
        return f".. autoclass:: {name}\n" + ("   :inherited-members:\n" if name in WITH_BASES else "")
    if inspect.isroutine(value):
        return f".. autofunction:: {name}\n"
    return f".. autodata:: {name}\n   :no-value:\n"


def _node_type(node: type) -> str:
    """Describe a node type under its call in the network description language instead of its constructor's."""
    optional = {option.name: option.default for option in node.options if option.default is not REQUIRED}
    names = [f"{name}={optional[name]!r}" if name in optional else name for name in node.positional_arguments()]
    others = [f"{name}={value!r}" for name, value in optional.items() if name not in node.positional_arguments()]
    call = ", ".join([*names, *(["..."] if node.variadic else []), *others])
    return f".. autoclass:: {node.__module__}.{node.__qualname__}({call})\n   :no-members:\n"


def _homes() -> dict[tuple[str, str], str]:
    """(package, public name) -> the package whose page describes it: the nearest to the defining module."""
    homes = {}
    for package, values in faces().items():
        for name, value in values.items():
            module = getattr(value, "__module__", package)
            holders = [other for other, names in faces().items() if names.get(name) is value]
            homes[package, name] = max(holders, key=lambda holder: (module.startswith(holder), len(holder)))
    return homes


def _contents(names: Iterable[str]) -> Iterator[str]:
    yield ".. toctree::\n"
    yield from (f"   {name}" for name in names)
    yield ""


def _title(text: str) -> Iterator[str]:
    yield f"{text}\n{'=' * len(text)}\n"
