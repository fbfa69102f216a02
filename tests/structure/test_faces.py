"""The stubs beside packages, `__init__.pyi`, show type checkers and editors the names that a table imports lazily."""

import importlib
import inspect

from tests.structure.test_imports import ROOMS, ROOT, modules_of

PACKAGES = ("argonaut", *ROOMS)
HEADER = "# From the table in __init__.py, by `python -m tests.structure.test_faces`\n"


def stubs():
    """Path -> text of the stub of every package with a table."""
    texts = {}
    for name, path in modules_of(ROOT, PACKAGES).items():
        homes = homes_of(name) if path.name == "__init__.py" else {}
        imports = sorted(f"from {module} import {public} as {public}\n" for public, module in homes.items())
        if imports:  # under their own names: these are public (PEP 484)
            texts[path.with_suffix(".pyi")] = HEADER + "".join(imports)
    return texts


def homes_of(name):
    """Public name -> module, from the table of a package."""
    package = importlib.import_module(name)
    if name == "argonaut":
        return package._HOME_OF
    if not hasattr(package, "__getattr__"):
        return {}
    homes = inspect.getclosurevars(package.__getattr__).nonlocals["homes"]
    return {public: f"{name}.{module}" for public, module in homes.items()}


def test_stubs_show_the_names_of_the_tables():
    """After a change of a table: python -m tests.structure.test_faces"""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.pyi")]
    assert {path: path.read_text(encoding="utf-8") for path in paths} == stubs()


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")
