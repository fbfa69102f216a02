"""Finds the names of a configuration that source code reads, with their defaults.

The parameters of an action are listed nowhere but in calls such as `config.int("epochSize", 0)`.
"""

import ast
import importlib
import inspect
from types import ModuleType

READS = {"text", "path", "int", "float", "bool", "choice", "array", "ints", "floats"}
ASKS = {"has", "has_own", "is_block", "block"}
NONE_GIVEN = object()


def names_read(source: ModuleType | type | str) -> dict[str, str | None]:
    """Return name -> default as text, in order of appearance; None if the call has no constant default.

    source: a module or its name, or a class, whose bases are searched too.
    """
    if isinstance(source, str):
        source = importlib.import_module(source)
    if isinstance(source, type):
        modules = dict.fromkeys(inspect.getmodule(base) for base in source.__mro__ if base is not object)
        found: dict[str, str | None] = {}
        for module in modules:
            found = {**names_read(module), **found} if module is not inspect.getmodule(source) else names_read(module)
        return found
    found = {}
    for node in ast.walk(ast.parse(inspect.getsource(source))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, default = _name_and_default(node)
        if name is not None and (name not in found or found[name] is None):
            found[name] = default
    return found


def _name_and_default(call: ast.Call) -> tuple[str | None, str | None]:
    if call.func.attr not in READS | ASKS or not call.args or not _is_config(call.func.value):
        return None, None
    first = call.args[0]
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return None, None
    position = 2 if call.func.attr == "choice" else 1
    if call.func.attr in ASKS or len(call.args) <= position:
        return first.value, None
    return first.value, _as_text(call.args[position])


def _is_config(node: ast.expr) -> bool:
    """Whether an expression is a block of the configuration, judged by its name."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in ("config", "block", "sgd", "builder", "top")


def _as_text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return default_text(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return f"-{default_text(node.operand.value)}"
    if isinstance(node, ast.List):
        return default_text([element.value for element in node.elts if isinstance(element, ast.Constant)])
    return None


def default_text(value: object) -> str:
    """Return a default as it is written in a configuration."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return "1#INF" if value == float("inf") else f"{value:g}"
    if isinstance(value, list | tuple):
        return ":".join(default_text(one) for one in value)
    return "" if value is None else str(value)
