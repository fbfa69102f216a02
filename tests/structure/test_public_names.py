"""The public names of every package: public_names.txt holds them, so that the interface changes on purpose only."""

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import get_args, get_type_hints

import numpy.typing
import pytest

from tests.structure.test_imports import ROOMS, ROOT, modules_of

EXPECTED = Path(__file__).parent / "public_names.txt"
MEMBERS = (FunctionType, property, cached_property, classmethod, staticmethod)
FACES = sorted(name for name, path in modules_of(ROOT, ROOMS).items() if path.name == "__init__.py")


def public_names():
    """A line for each package with public names: `package: name name ...`."""
    lines = []
    for name in FACES:
        names = names_of(importlib.import_module(name))
        if names:
            lines.append(f"{name}: {' '.join(sorted(names))}")
    return "\n".join(lines) + "\n"


def test_public_names_change_on_purpose():
    """After a change that is meant: python -m tests.structure.test_public_names > tests/structure/public_names.txt"""
    assert public_names() == EXPECTED.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FACES)
def test_every_public_name_is_there_and_says_what_it_is(name):
    package = importlib.import_module(name)
    assert package.__doc__
    beside = {path.stem for path in Path(package.__file__).parent.iterdir()}
    assert not beside & set(names_of(package)), "a module of this name would hide the public name"
    for public in names_of(package):
        value = getattr(package, public)
        if callable(value):
            assert value.__doc__, f"{name}.{public} has no docstring"


def test_every_member_of_a_public_class_says_what_it_is():
    missing = [
        f"{name}.{member}"
        for name, value in public_values().items()
        for member, method in (vars(value) if inspect.isclass(value) else {}).items()
        if not member.startswith("_") and isinstance(method, MEMBERS) and not inspect.getdoc(getattr(value, member))
    ]
    assert not missing


def test_parameters_of_public_functions_are_described():
    missing = [
        f"{name}: {parameter}"
        for name, value in public_values().items()
        if inspect.isfunction(value)
        for parameter in inspect.signature(value).parameters
        if not re.search(rf"^ +(\**\w+, )*\**{parameter}\b", value.__doc__.partition("Parameters\n")[2], re.M)
    ]
    assert not missing


def public_values() -> dict[str, object]:
    """`package.name` -> value of every public name."""
    packages = [importlib.import_module(name) for name in FACES]
    return {f"{package.__name__}.{name}": getattr(package, name) for package in packages for name in names_of(package)}


def names_of(package) -> list[str]:
    return getattr(package, "__all__", [])


def signatures(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Everything with annotations in a public value: a function; or a class, its methods and its properties."""
    yield name, value
    for kind in value.__mro__ if inspect.isclass(value) else ():
        if kind.__module__.split(".")[0] in ROOMS:
            for member, method in vars(kind).items():
                if member == "__init__" or not member.startswith("_"):
                    for function in ("fget", "func", "__func__"):  # of properties, cached ones, class methods
                        method = getattr(method, function, None) or method
                    yield f"{name}.{member}", method


def annotated_classes(value: object, names: dict[str, object]) -> Iterator[type]:
    """The project's classes in the annotations of a function or class; `names` are those imported for checkers only."""
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return
    try:
        hints = get_type_hints(value)
    except NameError:
        hints = get_type_hints(value, localns=names)
    for member, hint in hints.items():
        if not member.startswith("_"):
            yield from classes_in(hint)


def classes_in(hint: object) -> Iterator[type]:
    if inspect.isclass(hint) and hint.__module__.split(".")[0] in ROOMS:
        yield hint
    for inner in hint if isinstance(hint, list) else get_args(hint):
        yield from classes_in(inner)


def test_types_in_public_signatures_are_public():
    """A class that a public function takes or returns, or that is an attribute of a public class, is public itself."""
    public = public_values()
    known = {value for value in public.values() if inspect.isclass(value)}
    names = {"np": numpy, "npt": numpy.typing} | {name.rpartition(".")[2]: value for name, value in public.items()}
    missing = {
        f"{one.__module__}.{one.__qualname__}, of {where}"
        for name, value in public.items()
        for where, part in signatures(name, value)
        for one in annotated_classes(part, names)
        if one not in known
    }
    assert not missing, "\n".join(sorted(missing))


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match=r"module 'readers.htk' has no attribute 'read_htkk'"):
        _ = importlib.import_module("readers.htk").read_htkk
    with pytest.raises(ImportError):
        exec("from decoder.search import Nothing")


def test_faces_import_nothing_before_it_is_asked_for():
    code = "import sys; import readers.htk, acoustic.engine, decoder.graph, decoder.search, features\n"
    code += "print(sorted(set(sys.modules) & {'numpy', 'numba', 'kaldifst', 'soundfile', 'matplotlib'}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


if __name__ == "__main__":
    print(public_names(), end="")
