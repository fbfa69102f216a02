"""The first pass over a description: macros are expanded and every node is planned in the order of the statements."""

from acoustic.descriptions.ndl.cntk_options import Notes
from acoustic.descriptions.ndl.macros import MacroTable, function_names
from acoustic.descriptions.ndl.names import Names
from acoustic.descriptions.ndl.parse import MAX_DEPTH, NODE_LISTS
from acoustic.descriptions.ndl.plan import Binding, Frame, Planned, Reference, Symbol, without_tags
from acoustic.descriptions.ndl.syntax import Assignment, Call, Expression, Macro, Name, NodeList, Statement
from acoustic.nodes.registry import node_class
from readers.config.values import did_you_mean
from readers.errors import ConfigError, ModelError

MAX_CALLS = 50_000  # limit on the expansion of nested macros


class Expansion:
    """Plans the nodes of statements.

    Attributes
    ----------
    plan : list of Planned
        The nodes in order.
    special : list of (str, Reference)
        List names of the network and their new members.
    tags : list of (Reference, Symbol)
        Tags and the symbols that have them.
    notes : Notes
        Arguments that have no effect.
    """

    def __init__(self, names: Names, notes: Notes):
        self.names = names
        self.notes = notes
        self.plan: list[Planned] = []
        self.special: list[tuple[str, Reference]] = []
        self.tags: list[tuple[Reference, Symbol]] = []
        self._claimed: dict[str, str] = {}
        self._num_calls = self._num_unnamed = self._depth = 0

    def statement(self, statement: Statement, frame: Frame) -> Symbol | None:
        """Process a statement; return the symbol of an assignment, None for a node array."""
        if isinstance(statement, NodeList):
            list_name = NODE_LISTS[statement.name.lower()]
            if list_name is not None:
                self.special.extend((list_name, Reference(member, frame)) for member in statement.members)
            return None
        if statement.name.lower() in function_names():
            where = frame.trace(statement.where)
            raise ConfigError(f"{where}: {statement.name} is the name of a function; expected another name")
        return self._assign(statement, frame)

    def _assign(self, statement: Assignment, frame: Frame) -> Symbol:
        name = statement.name
        value = statement.value
        binding = frame.names.get(name.lower()) if name else None
        if binding is not None and not self.names.is_gone(binding.symbol):
            bare = without_tags(value)
            if binding.value is not None and without_tags(binding.value) == bare != value:
                # The book adds a tag by repeating the call with it (4.1.3.2).
                assert isinstance(value, Call)
                self._tag(value, binding.symbol, frame)
                return binding.symbol
            if binding.optional and not isinstance(value, Call):
                return binding.symbol  # overridden by a named argument of the macro call
            raise ConfigError(
                f"{frame.trace(statement.where)}: {name} is assigned already, at {binding.where}; expected a new name"
            )
        path = frame.join(name) if name else self.unnamed(frame)
        symbol = self._symbol(value, frame, path)
        if name:
            frame.names[name.lower()] = Binding(name, symbol, statement.where, value)
        return symbol

    def unnamed(self, frame: Frame) -> str:
        """Return a new name for a node without one."""
        while True:
            self._num_unnamed += 1
            path = frame.join(f"unnamed{self._num_unnamed}")
            if self.names.existing(path) is None and path.lower() not in self._claimed:
                return path

    def _symbol(self, value: Expression, frame: Frame, path: str = "") -> Symbol:
        """Return the symbol of an expression; `path` is the full name of the variable that it is assigned to."""
        if not isinstance(value, Call):
            return Reference(value, frame, path)
        self._num_calls += 1
        self._depth += 1
        if self._num_calls > MAX_CALLS or self._depth > MAX_DEPTH:
            limit = f"{MAX_CALLS} in all" if self._num_calls > MAX_CALLS else f"{MAX_DEPTH} deep"
            raise ConfigError(
                f"{frame.trace(value.where)}: more calls of macros and functions than {limit}; expected fewer"
            )
        definition = frame.macros.find(value.function)
        path = path or self.unnamed(frame)
        symbol = self._macro(value, *definition, frame, path) if definition else self._function(value, frame, path)
        self._depth -= 1
        self._tag(value, symbol, frame)
        return symbol

    def _function(self, call: Call, frame: Frame, path: str) -> Planned:
        where = frame.trace(call.where)
        try:
            kind = node_class(call.function)
        except ModelError as error:
            if "not built" in str(error):
                raise ConfigError(f"{where}: {error}") from None
            near = did_you_mean(call.function, [*frame.macros.names(), *function_names().values()])
            raise ConfigError(f"{where}: {call.function} is unknown; expected a function or a macro{near}") from None
        arguments = [self._symbol(value, frame) for value in call.positional]
        named = [(name, self._constant(name, value, frame)) for name, value in call.named]
        planned = Planned(kind, path, where, arguments, named)
        self.claim(planned)
        self.plan.append(planned)
        return planned

    def claim(self, planned: Planned) -> None:
        """Reserve a node's name. Raises ConfigError if another node has it, in any case."""
        key = planned.path.lower()
        owner = self._claimed.get(key)
        node = self.names.existing(planned.path)
        if owner is None and node is not None:
            owner = node.origin or "the existing network"
        if owner is not None:
            raise ConfigError(f"{planned.where}: node {planned.path} exists already, from {owner}; expected a new name")
        self._claimed[key] = planned.where

    def _macro(self, call: Call, macro: Macro, home: MacroTable, frame: Frame, path: str) -> Frame:
        if frame.is_within(macro):
            raise ConfigError(f"{frame.trace(call.where)}: macro {macro.name} calls itself; expected no recursion")
        values = call.positional
        if len(values) != len(macro.parameters):
            raise ConfigError(
                f"{frame.trace(call.where)}: parameter mismatch: {len(values)} arguments; "
                f"expected {len(macro.parameters)}, {macro.name}({', '.join(macro.parameters)})"
            )
        inner = Frame(path, home, macro, call, frame)
        for parameter, value in zip(macro.parameters, values):
            inner.names[parameter.lower()] = Binding(parameter, self._symbol(value, frame), call.where)
        for name, value in call.named:
            if name.lower() != "tag":
                self._optional(name, value, inner, frame)
        last: Symbol | None = None
        for statement in macro.body:
            last = self.statement(statement, inner) or last
        named_like_it = inner.names.get(macro.name.lower())
        inner.result = named_like_it.symbol if named_like_it else last
        return inner

    def _optional(self, name: str, value: Expression, inner: Frame, frame: Frame) -> None:
        """Bind a named argument of a macro call, which overrides the macro's own assignment of that name."""
        macro = inner.macro
        call = inner.call
        assert macro is not None
        assert call is not None
        where = frame.trace(call.where)
        if name.lower() in inner.names:
            raise ConfigError(f"{where}: {name} is a parameter of {macro.name}; expected its value by position, once")
        used = {word.lower(): word for word in words(macro)}
        if name.lower() not in used:
            near = did_you_mean(name, used.values())
            self.notes.add(call.where, f"macro {macro.name} does not use {name}{near}")
        symbol = self._constant(name, value, frame)
        inner.names[name.lower()] = Binding(name, symbol, where, optional=True)

    def _constant(self, name: str, value: Expression, frame: Frame) -> Reference:
        if isinstance(value, Call):
            where = frame.trace(value.where)
            raise ConfigError(f"{where}: {name}={value.function}(...); expected a constant, a number or a word")
        return Reference(value, frame)

    def _tag(self, call: Call, symbol: Symbol, frame: Frame) -> None:
        self.tags += [
            (self._constant(name, value, frame), symbol) for name, value in call.named if name.lower() == "tag"
        ]


def words(macro: Macro) -> list[str]:
    """Return every name in the body of a macro: assigned names and names used as arguments."""
    names: list[str] = []
    waiting: list[Expression] = []
    for statement in macro.body:
        if isinstance(statement, Assignment):
            names.append(statement.name)
            waiting.append(statement.value)
    while waiting:
        expression = waiting.pop()
        if isinstance(expression, Name):
            names.append(expression.text)
        elif isinstance(expression, Call):
            waiting.extend(argument.value for argument in expression.arguments)
    return [word for word in names if word]
