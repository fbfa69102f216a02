"""No two functions have the same body, whatever they call their variables."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tests.structure.test_imports import statements

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("readers", "features", "acoustic", "decoder", "recipes")
STATEMENTS, NODES = 2, 25  # the size from which a body counts, nested statements included


class Renamed(ast.NodeTransformer):
    """Gives the arguments and local variables of a function names by their order."""

    def __init__(self, function):
        names = [node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)]
        names += [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and is_assigned(node)]
        self.names = {name: f"v{number}" for number, name in enumerate(dict.fromkeys(names))}

    def visit_Name(self, node):
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def visit_arg(self, node):
        return ast.arg(self.names.get(node.arg, node.arg))


def is_assigned(name):
    return isinstance(name.ctx, ast.Store)


def body_of(function):
    """The statements without the docstring."""
    first = function.body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return function.body[1:] if is_text else function.body


def duplicates(root, rooms):
    """Groups of functions, as "file:line name", with equal bodies."""
    alike = defaultdict(list)  # functions whose nodes have the same types, in the order of `ast.walk`
    for path in (path for room in rooms for path in sorted((root / room).rglob("*.py"))):
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                body = body_of(node)
                inside = [one for statement in body for one in ast.walk(statement)]
                if len(inside) >= NODES and sum(isinstance(one, ast.stmt) for one in inside) >= STATEMENTS:
                    place = f"{path.relative_to(root)}:{node.lineno} {node.name}"
                    alike[tuple(type(one) for one in inside)].append((node, place))
    return [group for several in alike.values() if len(several) > 1 for group in equal_bodies(several)]


def equal_bodies(functions):
    found = defaultdict(list)
    for function, place in functions:
        renamed = Renamed(function)
        key = "\n".join(ast.dump(renamed.visit(statement)) for statement in body_of(function))
        found[key].append(place)
    return [group for group in found.values() if len(group) > 1]


def test_no_two_functions_have_the_same_body():
    assert duplicates(ROOT, ROOMS) == []


def test_a_body_written_twice_is_found(tmp_path):
    (tmp_path / "room").mkdir()
    text = 'def {}({}):\n    """{}"""\n    total = 0\n    for {} in {}:\n        total += {} * scale({}, 2)\n'
    text += "    return total\n"
    (tmp_path / "room" / "one.py").write_text(text.format("a", "xs", "One.", "x", "xs", "x", "x"))
    (tmp_path / "room" / "two.py").write_text(text.format("b", "ys", "Another.", "y", "ys", "y", "y"))
    assert duplicates(tmp_path, ["room"]) == [["room/one.py:1 a", "room/two.py:1 b"]]
    (tmp_path / "room" / "two.py").write_text(text.format("b", "ys", "Another.", "y", "ys", "y", "total"))
    assert duplicates(tmp_path, ["room"]) == []
