"""The later passes: arguments become operands and options, and nodes are created, connected and given their values.

Source: CNTK book, sections 5.2.3.4 to 5.2.3.6.
"""

from collections.abc import Iterator
from typing import Any

from acoustic.descriptions.ndl.cntk_options import refused, unread_options, without_effect
from acoustic.descriptions.ndl.expand import Expansion
from acoustic.descriptions.ndl.plan import Planned, Reference
from acoustic.descriptions.ndl.syntax import Name, Number
from acoustic.nodes.base import Node
from acoustic.nodes.option import REQUIRED, Option
from acoustic.nodes.properties import DELAY
from acoustic.nodes.registry import node_class
from readers.config.values import parse_bool
from readers.errors import ConfigError


def signature(kind: type[Node]) -> str:
    """Return a function's call syntax, ``Parameter(rows, [cols])``."""
    optional = {option.name for option in kind.options if option.default is not REQUIRED}
    names = [f"[{name}]" if name in optional else name for name in kind.positional_arguments()]
    return f"{kind.type_name}({', '.join(names)}{', ...' if kind.variadic else ''})"


class Connection:
    """Creates the nodes that an expansion has planned."""

    def __init__(self, expansion: Expansion):
        self._expansion = expansion
        self._names = expansion.names
        self._constants: dict[str, Planned] = {}

    def make(self, values: bool = True) -> list[Node]:
        """Add the planned nodes to the network and return them, operands before users.

        Initial values are drawn in the order of the plan; with `values` false, parameters get none.
        """
        network = self._names.network
        plan = self._expansion.plan
        for planned in list(plan):
            self._bind(planned)
        nodes = []
        for planned in self._operands_first():
            operands = [operand.made if isinstance(operand, Planned) else operand for operand in planned.operands]
            name = planned.path
            planned.made = network.add_node(planned.kind.type_name, name, operands, planned.options, planned.where)
            nodes.append(planned.made)
        for planned in plan:
            if DELAY in planned.kind.properties:
                self._connect(planned)
        for planned in plan:
            assert planned.made is not None
            self._initialise(planned.made, values)
        return nodes

    def _connect(self, planned: Planned) -> None:
        """Give a delay the operand that was created after it."""
        operand = planned.operands[0]
        node = operand.made if isinstance(operand, Planned) else operand
        assert planned.made is not None
        assert node is not None
        self._names.network.connect(planned.made, node)

    def _initialise(self, node: Node, values: bool) -> None:
        network = self._names.network
        try:
            if values:
                network.initialise(node)
            elif node.is_stored and not node.is_precomputed:
                network.check_size(node)
        except OSError as fault:
            raise ConfigError(f"{node.where}: {fault}; expected a readable file") from fault

    def _bind(self, planned: Planned) -> None:
        """Sort the arguments of a call into operands and options by the declaration of the node type."""
        kind = planned.kind
        by_option = {name.lower(): option for option in kind.options for name in (option.name, *option.aliases)}
        for name, value in planned.named:
            option = by_option.get(name.lower())
            if name.lower() == "tag" and not self._keeps_tag(option, value):
                continue
            if option is not None:
                self._give(option, value, planned)
            elif not self._is_idle(name, planned):
                # The check of the node type lists its options.
                planned.options[name] = self._text(value)
        for name, argument in zip(self._positions(planned), planned.arguments):
            if name in kind.operand_names:
                planned.operands.append(self._operand(argument))
            else:
                self._give(by_option[name.lower()], argument, planned)
        for name in unread_options(kind, planned.options):
            init = planned.options.get("init", "uniform")
            unread = planned.options.pop(name)
            self._expansion.notes.add(planned.where, f"{name}={unread} has no effect with init={init}")

    def _is_idle(self, name: str, planned: Planned) -> bool:
        """Note an argument of CNTK that has no effect on this node type; return whether it is one.

        Raises ConfigError for one that is not built.
        """
        if what := refused(planned.kind, name):
            raise ConfigError(f"{planned.where}: {name} of {planned.kind.type_name} is not built: it belongs to {what}")
        reason = without_effect(planned.kind, name)
        if reason:
            text = f"{name} has no effect on {planned.kind.type_name}: {reason}"
            self._expansion.notes.add(planned.where, text)
        return bool(reason)

    def _give(self, option: Option, value: Any, planned: Planned) -> None:
        if option.name in planned.options:
            raise ConfigError(f"{planned.where}: {option.name} is given twice; expected it once")
        planned.options[option.name] = self._option(option, value, planned)

    def _positions(self, planned: Planned) -> list[str]:
        """Return the operand or option that each positional argument gives.

        Missing optional arguments are dropped from the last one, then those that are given by name.
        """
        kind = planned.kind
        count = len(planned.arguments)
        names = list(kind.positional_arguments())
        optional = [option.name for option in kind.options if option.default is not REQUIRED]
        while len(names) > count:
            left_out = [name for name in names if name in optional] or [
                name for name in names if name in planned.options
            ]
            if not left_out:
                break
            names.remove(left_out[-1])
        if kind.variadic and 0 < len(names) < count:
            names += [names[-1]] * (count - len(names))
        if len(names) != count:
            argument_count = "1 argument" if count == 1 else f"{count} arguments"
            raise ConfigError(f"{planned.where}: parameter mismatch: {argument_count}; expected {signature(kind)}")
        return names

    def _keeps_tag(self, option: Option | None, value: Reference) -> bool:
        """Return whether the node type has the tag as an option; the lists of tagged nodes are kept elsewhere."""
        return option is not None and self._text(value).lower() in ("feature", "label")

    def _text(self, value: Reference) -> str:
        """Return a constant as text: the value of a variable of that name, or the word itself."""
        resolved = self._names.resolve(value, word=True)
        if isinstance(resolved, Reference):
            return resolved.expression.text
        return value.expression.text

    def _option(self, option: Option, value: Any, planned: Planned) -> Any:
        """Return the value of an option from a number, a word, or a variable that holds one."""
        if isinstance(value, Reference) and isinstance(value.expression, Name):
            word = value.expression
            if word.quoted or word.text.lower() in (choice.lower() for choice in option.choices):
                value = word
        if isinstance(value, Name):
            text: str | None = value.text
        else:
            resolved = self._names.resolve(value, word=option.kind in (str, bool))
            number = self._number_of(resolved)
            if number is not None and option.kind in (int, float):
                return number
            if not isinstance(resolved, Reference):
                name = resolved.path if isinstance(resolved, Planned) else resolved.name
                raise ConfigError(
                    f"{planned.where}: {option.name} is the node {name}; expected a constant, {signature(planned.kind)}"
                )
            if isinstance(resolved.expression, Number) and option.kind in (int, float):
                return resolved.expression.value
            text = resolved.expression.text
        return parse_bool(text or "", planned.where, option.name) if option.kind is bool else text

    def _number_of(self, found: Any) -> Any:
        """Return the value of a Constant (1x1), which the book uses for some options; None for anything else."""
        if isinstance(found, Node):
            return found.value[0, 0] if isinstance(found, node_class("Constant")) and found.value.size == 1 else None
        if isinstance(found, Planned) and found.kind is node_class("Constant") and len(found.arguments) == 1:
            value = found.kind.options[0]
            sizes = [name for name, _ in found.named if name.lower() != "tag"]
            return None if sizes else self._option(value, found.arguments[0], found)
        return None

    def _operand(self, value: Any) -> Planned | Node:
        """Return the node of an argument; a number becomes a Constant (1x1)."""
        resolved = self._names.resolve(value)
        return self._constant(resolved) if isinstance(resolved, Reference) else resolved

    def _constant(self, number: Reference) -> Planned | Node:
        """Return the Constant of a number: one per variable, with its name, or unnamed without a variable."""
        assert isinstance(number.expression, Number)
        path = number.path or self._expansion.unnamed(number.frame)
        if path not in self._constants:
            existing = self._names.existing(path)
            if existing is not None and existing.settings == {"value": number.expression.value, "rows": 1, "cols": 1}:
                return existing  # made by earlier statements
            where = number.frame.trace(number.expression.where)
            planned = Planned(node_class("Constant"), path, where, [], [], options={"value": number.expression.value})
            self._expansion.claim(planned)
            self._expansion.plan.append(planned)
            self._constants[path] = planned
        return self._constants[path]

    def _operands_first(self) -> Iterator[Planned]:
        """Yield the planned nodes in the order of the plan, except that operands come before users.

        Delays do not wait for their operands, which may depend on them.
        """

        def below(planned: Planned) -> Iterator[Planned | Node]:
            return iter(() if DELAY in planned.kind.properties else planned.operands)

        done: set[int] = set()
        for root in self._expansion.plan:
            path: dict[int, Planned] = {}
            stack = [] if id(root) in done else [(root, below(root))]
            path[id(root)] = root
            while stack:
                planned, remaining = stack[-1]
                child = next(remaining, None)
                if child is None:
                    stack.pop()
                    del path[id(planned)]
                    done.add(id(planned))
                    yield planned
                elif isinstance(child, Planned) and child.made is None:
                    if id(child) in path:
                        names = [ancestor.path for ancestor in path.values()]
                        loop = " <- ".join([*names[names.index(child.path) :], child.path])
                        raise ConfigError(
                            f"{child.where}: {child.path} is its own operand: {loop}; expected no loop, or one with a "
                            "PastValue or FutureValue in it"
                        )
                    if id(child) not in done:
                        path[id(child)] = child
                        stack.append((child, below(child)))
