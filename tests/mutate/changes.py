"""Small wrong changes of a source file: comparisons, arithmetic, constants, conditions, dropped statements."""

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

OPERATORS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"min": "max", "any": "all", "argmin": "argmax", "minimum": "maximum", "floor": "ceil", "zeros": "ones"}
NAMES |= {other: name for name, other in NAMES.items()}
KINDS = ("comparison", "arithmetic", "constant", "condition", "logic", "function", "statement")
UNTOUCHED = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)  # messages and imports
UNTOUCHED_CALLS = ("print", "warn", "note", "namedtuple", "dtype", "add_argument")


@dataclass(frozen=True)
class Change:
    """One change: the bytes `start` to `end` of a file are replaced.

    `identity` depends on the statement and its function, not on line numbers, so that it survives changes elsewhere.
    """

    path: str
    line: int
    function: str
    kind: str
    before: str
    after: str
    start: int
    end: int
    identity: str

    def apply(self, source: bytes) -> bytes:
        """The changed file."""
        return source[: self.start] + self.after.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{self.identity}  {self.path}:{self.line} {self.function}: {self.before}  ->  {self.after}"


def changes_of(path: str, source: bytes) -> list[Change]:
    """All changes of one file, in the order of its lines."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found, seen = [], Counter()
    for node, changed, kind, function, statement in _sites(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before, after = ast.unparse(node), changed if isinstance(changed, str) else f"({ast.unparse(changed)})"
        if isinstance(changed, ast.stmt):
            after = ast.unparse(changed)
        text = "|".join((path, function, statement, before, after))
        seen[text] += 1
        identity = hashlib.sha256(f"{text}|{seen[text]}".encode()).hexdigest()[:10]
        found.append(Change(path, node.lineno, function, kind, before, after, start, end, identity))
    return found


def _sites(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST | str, str, str, str]]:
    """(node, its replacement, kind, function, statement) of every change."""
    waiting = [(child, "", "", False) for child in reversed(tree.body)]
    while waiting:
        node, function, statement, is_condition = waiting.pop()
        if isinstance(node, UNTOUCHED) or _is_text(node) or _is_type(node) or _is_message(node):
            continue
        if isinstance(node, ast.stmt):
            statement = ast.unparse(node).split("\n")[0]
        for changed, kind in _changed(node):
            yield node, changed, kind, function or "<module>", statement
        if is_condition:
            yield node, "False", "condition", function or "<module>", statement
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            function = f"{function}.{node.name}".lstrip(".")
        conditions = _conditions(node)
        waiting.extend((child, function, statement, child in conditions) for child in reversed(_children(node)))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_type(node: ast.AST) -> bool:
    """Whether an `if` is for type checkers, or an assignment lists public names."""
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _is_message(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _name(node.func) in UNTOUCHED_CALLS


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _children(node: ast.AST) -> list[ast.AST]:
    """The children in which changes are looked for: no annotations, decorators and types of exceptions."""
    left_out: list[ast.AST] = []
    if isinstance(node, ast.FunctionDef):
        left_out += [*node.decorator_list, node.returns]
    elif isinstance(node, ast.ClassDef):
        left_out += node.decorator_list
    elif isinstance(node, (ast.arg, ast.AnnAssign)):
        left_out.append(node.annotation)
    elif isinstance(node, ast.ExceptHandler):
        left_out.append(node.type)
    elif isinstance(node, ast.Subscript) and _name(node.value) in ("tuple", "dict", "list", "Callable", "ClassVar"):
        left_out.append(node.slice)
    return [child for child in ast.iter_child_nodes(node) if not any(child is other for other in left_out)]


def _conditions(node: ast.AST) -> list[ast.AST]:
    """The conditions of a statement, conditional expression or comprehension."""
    if isinstance(node, (ast.If, ast.IfExp)):
        return [node.test]
    return node.ifs if isinstance(node, ast.comprehension) else []


def _changed(node: ast.AST) -> Iterator[tuple[ast.AST | str, str]]:
    """(replacement, kind) of a node."""
    match node:
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                yield _with(node, ops=[*ops[:i], OPERATORS[type(op)](), *ops[i + 1 :]]), "comparison"
        case ast.BinOp(op=op) if type(op) in OPERATORS and not (_is_string(node.left) or _is_string(node.right)):
            yield _with(node, op=OPERATORS[type(op)]()), "arithmetic"
        case ast.AugAssign(op=op) if type(op) in OPERATORS:
            yield _with(node, op=OPERATORS[type(op)]()), "arithmetic"
            yield "pass", "statement"
        case ast.Constant(value=bool() as value):
            yield str(not value), "constant"
        case ast.Constant(value=int() as value):
            yield str({0: 1, 1: 0}.get(value, value + 1)), "constant"
        case ast.Constant(value=float() as value):
            yield repr(2 * value or 1.0), "constant"
        case ast.BoolOp(op=op):
            yield _with(node, op=OPERATORS[type(op)]()), "logic"
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand, "logic"
        case ast.Name(id=name) | ast.Attribute(attr=name) if isinstance(node.ctx, ast.Load) and name in NAMES:
            changed = {"id": NAMES[name]} if isinstance(node, ast.Name) else {"attr": NAMES[name]}
            yield ast.unparse(_with(node, **changed)), "function"
        case ast.Expr(value=ast.Call() as call) if not _is_message(call):
            yield "pass", "statement"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Continue() | ast.Break() | ast.Delete():
            yield "pass", "statement"


def _with(node: ast.AST, **fields) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
