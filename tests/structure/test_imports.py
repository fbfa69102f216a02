"""No two files import each other, directly or in a circle, imports inside functions included."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("readers", "features", "acoustic", "decoder", "recipes")


def modules_of(root, rooms):
    """Module name -> path, for every Python file of the rooms."""
    found = {}
    for room in rooms:
        for path in sorted((root / room).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def statements(tree):
    """All statements of a syntax tree, those inside others included; expressions hold no imports."""
    found = [tree]
    for node in found:
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            found += getattr(node, field, [])
    return found


def imports_of(name, path, modules):
    """The modules of `modules` that a file imports; imports for type checkers alone do not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(node)
        for block in statements(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for statement in block.body
        for node in statements(statement)
    }
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found = set()
    for node in statements(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.add(inner if inner in modules else base)
    return (found & modules.keys()) - {name}


def circles(graph):
    """The strongly connected components of more than one module, each as a path that comes back to its start."""
    found, left = [], set(graph)
    while left:
        start = left.pop()
        ahead = reachable(graph, start)
        component = {name for name in ahead if start in reachable(graph, name)}
        left -= component
        if len(component) > 1:
            found.append(path_back(graph, start, component))
    return found


def reachable(graph, start):
    seen, todo = set(), [start]
    while todo:
        for name in graph[todo.pop()]:
            if name not in seen:
                seen.add(name)
                todo.append(name)
    return seen


def path_back(graph, start, component):
    """The shortest path from a module of a component back to it."""
    paths = [[start]]
    for path in paths:
        for name in sorted(graph[path[-1]] & component):
            if name == start:
                return " -> ".join([*path, start])
            if all(name not in one for one in paths):
                paths.append([*path, name])
    raise AssertionError("no circle")


def import_graph(root, rooms):
    modules = modules_of(root, rooms)
    return {name: imports_of(name, path, modules) for name, path in modules.items()}


def test_no_files_import_each_other_in_a_circle():
    graph = import_graph(ROOT, ROOMS)
    assert len(graph) > 300
    assert circles(graph) == []


def test_every_imported_name_exists():
    """Imports inside functions included, which fail only when the function is called."""
    modules, missing = modules_of(ROOT, ROOMS), []
    for name in modules:
        importlib.import_module(name)
    users = [path for room in ("benchmarks", "docs", "tests") for path in (ROOT / room).rglob("*.py")]
    for path in [*modules.values(), *users]:
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in ROOMS:
                source = importlib.import_module(node.module)
                names = [alias.name for alias in node.names if f"{node.module}.{alias.name}" not in modules]
                missing += [f"{path}:{node.lineno}: {one}" for one in names if not hasattr(source, one)]
    assert missing == []


FILES = {
    "room/__init__.py": "",
    "room/a.py": "from room import b\n",
    "room/b.py": "from room.inner.c import thing\n",
    "room/inner/__init__.py": "",
}
HIDDEN = {
    "a function": "def f():\n    from room import a\n    return a\n",
    "a method": "class C:\n    def f(self):\n        import room.a\n",
    "a handler": "try:\n    pass\nexcept OSError:\n    from room import a\n",
    "a case": "match 1:\n    case 1:\n        from room import a\n",
    "a relative import": "from .. import a\n",
    "a relative import of a name": "from ..a import thing\n",
}


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("kind", HIDDEN)
def test_a_circle_is_found_wherever_the_import_stands(kind, tmp_path):
    write(tmp_path, FILES | {"room/inner/c.py": HIDDEN[kind]})
    (circle,) = circles(import_graph(tmp_path, ["room"]))
    assert set(circle.split(" -> ")) == {"room.a", "room.b", "room.inner.c"}


def test_imports_for_type_checkers_make_no_circle(tmp_path):
    text = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from room import a\n"
    write(tmp_path, FILES | {"room/inner/c.py": text})
    assert circles(import_graph(tmp_path, ["room"])) == []


def test_kernels_are_compiled_with_the_njit_of_the_readers():
    """numba's own would keep kernels under another stamp, so that processes would compile them again in turns."""
    allowed, found = "readers.common.kernels", []
    for name, path in modules_of(ROOT, ROOMS).items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "numba" and name != allowed:
                names = ("cfunc", "jit", "njit", "vectorize")
                found += [f"{name}: {alias.name}" for alias in node.names if alias.name in names]
    assert found == []
