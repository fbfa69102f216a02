"""The library prints nothing: what a person reads is printed by recipes and the command line."""

import ast
from collections.abc import Iterator

from tests.structure.test_imports import ROOT

ROOMS = ("readers", "features", "acoustic", "decoder")
TRACE = "acoustic/engine/execution/program.py"  # prints the operations of a pass, if the engine is told to
TERMINAL = {"sys.stdout", "sys.stderr", "sys.argv", "sys.__stdout__", "sys.__stderr__"}


def uses_of_the_terminal(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the calls of print without a file, and the streams and words of the process."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in TERMINAL:
            yield node
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
            yield from () if any(keyword.arg == "file" for keyword in node.keywords) else (node,)


def places(rooms, found) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for room in rooms
        for path in sorted((ROOT / room).rglob("*.py"))
        if not path.is_relative_to(ROOT / "recipes/cli")
        for node in found(ast.parse(path.read_text(encoding="utf-8")))
    ]


def test_the_library_does_not_write_to_the_terminal():
    assert [place for place in places(ROOMS, uses_of_the_terminal) if not place.startswith(TRACE)] == []
    assert len(list(uses_of_the_terminal(ast.parse("print(1)\nprint(2, file=f)\nsys.stderr.write('')")))) == 2
