"""Locals say what they hold: few names that only tell where a value came from, few packed assignments.

`found = read_mlf(path)` makes a reader look up what was found; `alignment = read_mlf(path)` does not.  A name of this
list may be right in its place, such as `left` for a left context, and two values that belong together may be assigned
together, such as `start, end = 0, length`; so the bars are above 0.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.structure.test_imports import ROOT

VAGUE = frozenset(
    "found one ones known mine kept place told given taken rest here there own other others made asked wanted seen "
    "left whole both below inside answer".split()
)
MOST_VAGUE = 0.01  # of the assigned names
MOST_PACKED = 3.0  # assignments per 1,000 lines
FINISHED = ("readers", "features", "acoustic", "recipes", "decoder")
EXCEPT = ("acoustic/runtime",)


def functions(text: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a module that are not inside another one."""
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node
            else:
                waiting.append(node)


def assigned_names(text: str) -> list[str]:
    """The names to which the functions of a module assign, in loops and comprehensions, too."""
    return [
        node.id
        for function in functions(text)
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]


def packed_assignments(text: str) -> list[int]:
    """The lines in functions that assign several written-out values at once."""
    return [
        node.lineno
        for function in functions(text)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple) and isinstance(node.targets[0], ast.Tuple)
    ]


def sources(room: str) -> list[tuple[Path, str]]:
    """Path and text of each module of a room, without those of the folders that are not finished."""
    paths = [path.relative_to(ROOT) for path in sorted((ROOT / room).rglob("*.py"))]
    return [
        (path, (ROOT / path).read_text(encoding="utf-8")) for path in paths if not path.as_posix().startswith(EXCEPT)
    ]


@pytest.mark.parametrize("room", FINISHED)
def test_locals_say_what_they_hold(room):
    names = {path: assigned_names(text) for path, text in sources(room)}
    vague = {f"{path}: {name}" for path, of_file in names.items() for name in of_file if name in VAGUE}
    count = sum(name in VAGUE for of_file in names.values() for name in of_file)
    total = sum(map(len, names.values()))
    assert count < MOST_VAGUE * total, f"{count} of {total} assigned names:\n" + "\n".join(sorted(vague))


@pytest.mark.parametrize("room", FINISHED)
def test_unrelated_values_are_assigned_one_a_line(room):
    lines = {path: packed_assignments(text) for path, text in sources(room)}
    places = [f"{path}:{line}" for path, of_file in lines.items() for line in of_file]
    length = sum(text.count("\n") for _, text in sources(room))
    assert len(places) < MOST_PACKED * length / 1000, f"{len(places)} in {length} lines:\n" + "\n".join(places)


def test_what_is_counted():
    text = "def f(x):\n    found, a = 1, [one for one in x]\n    b, c = x\n    for known in x:\n        d = a\n"
    assert sorted(assigned_names(text)) == ["a", "b", "c", "d", "found", "known", "one"]
    assert packed_assignments(text) == [2]
    assert not assigned_names("found = 1\n")  # a name of the module
