"""Name lookup: variables in any case, dotted names into macro calls, and nodes that exist already."""

from collections.abc import Iterable

from acoustic.descriptions.ndl.parse import MAX_DEPTH
from acoustic.descriptions.ndl.plan import Frame, Planned, Reference, Symbol
from acoustic.descriptions.ndl.syntax import Call, Number
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from readers.config.scope import shorten
from readers.config.values import did_you_mean
from readers.errors import ConfigError


class Names:
    """Lookup on a network; a frame without a caller, the script itself, sees the network's nodes too."""

    def __init__(self, network: Network):
        self.network = network
        self._depth = 0
        self._constants: dict[tuple[str, str], Reference] = {}
        self.refresh()

    def refresh(self) -> None:
        """Update the index of the network's names."""
        self._folded: dict[str, list[str]] = {}
        for name in self.network.nodes:
            self._folded.setdefault(name.lower(), []).append(name)

    def existing(self, name: str) -> Node | None:
        """Return the network's node with a name, in any case unless two names differ only in case; None if none."""
        nodes = self.network.nodes
        if name in nodes:
            return nodes[name]
        same = self._folded.get(name.lower(), [])
        return nodes.get(same[0]) if len(same) == 1 else None

    def is_gone(self, symbol: Symbol) -> bool:
        """Return whether the symbol's node was created and has since been removed from the network."""
        while isinstance(symbol, Frame) and symbol.result is not None:
            symbol = symbol.result
        node = symbol.made if isinstance(symbol, Planned) else None
        return node is not None and self.network.nodes.get(node.name) is not node

    def lookup(self, frame: Frame, name: str) -> Symbol | None:
        """Return the symbol of a name as seen from a frame, None if there is none."""
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise ConfigError(f"names that refer to each other more than {MAX_DEPTH} deep; expected fewer")
            symbol = self._local(frame, name.lower())
            if symbol is not None and not self.is_gone(symbol):
                return symbol
            constant = frame.macros.constant(name)
            if constant is not None:
                # Always the same object, so that a circle of constants is detected.
                assert not isinstance(constant.value, Call)
                new = Reference(constant.value, frame, constant.name)
                return self._constants.setdefault((frame.path, constant.name.lower()), new)
            return self.existing(name) if frame.caller is None else None
        finally:
            self._depth -= 1

    def _local(self, frame: Frame, name: str) -> Symbol | None:
        """Return the symbol of a name in the frame or, for a dotted name, in the macro calls of the frame's names."""
        while name not in frame.names:
            dot = name.rfind(".")
            while dot > 0 and name[:dot] not in frame.names:
                dot = name.rfind(".", 0, dot)
            inner = self._called(frame.names[name[:dot]].symbol) if dot > 0 else None
            if inner is None:
                return None
            frame = inner
            name = name[dot + 1 :]
        return frame.names[name].symbol

    def _called(self, symbol: Symbol) -> Frame | None:
        """Return the frame of the macro call that a symbol is an alias of, None if it is not."""
        visited: set[int] = set()
        while isinstance(symbol, Reference):
            if isinstance(symbol.expression, Number) or id(symbol) in visited:
                return None
            visited.add(id(symbol))
            target = self.lookup(symbol.frame, symbol.expression.text)
            if target is None:
                return None
            symbol = target
        return symbol if isinstance(symbol, Frame) else None

    def resolve(self, symbol: Symbol, word: bool = False) -> Reference | Planned | Node:
        """Follow aliases to a number or node; with `word`, an unknown name is returned as it is.

        Raises ConfigError for an unknown name, and for names that refer to each other in a circle.
        """
        visited: set[int] = set()
        while isinstance(symbol, Reference | Frame):
            if isinstance(symbol, Frame):
                assert symbol.result is not None
                symbol = symbol.result
                continue
            name = symbol.expression
            if isinstance(name, Number):
                return symbol
            where = symbol.frame.trace(name.where)
            if id(symbol) in visited:
                raise ConfigError(
                    f"{where}: {name.text} refers to itself; expected a value at the end of the references"
                )
            visited.add(id(symbol))
            target = self._found(symbol, name.text, where)
            if target is None and word:
                return symbol
            if target is None:
                raise ConfigError(self._unknown(symbol.frame, name.text, where))
            symbol = target
        return symbol

    def _found(self, symbol: Reference, name: str, where: str) -> Symbol | None:
        try:
            return self.lookup(symbol.frame, name)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None

    def _unknown(self, frame: Frame, name: str, where: str) -> str:
        variables = [binding.name for binding in frame.names.values()]
        if frame.macro is None:
            text = "expected a variable or a node"
            more = list(self.network.nodes)
        else:
            text = f"expected a parameter or variable of macro {frame.macro.name}"
            more = []
        if name.lower() in (macro_name.lower() for macro_name in frame.macros.names()):
            text += f"; {name} is a macro: {name}(...) calls it"
            return f"{where}: {shorten(name)} is not known; {text}"
        return f"{where}: {shorten(name)} is not known; {text}{did_you_mean(name, _dotted(variables, frame, more))}"


def _dotted(known: list[str], frame: Frame, more: Iterable[str]) -> list[str]:
    """Return names to suggest: those of the frame, of its macro calls one level deep, and of the network."""
    inner_names = [
        f"{binding.name}.{inner.name}"
        for binding in frame.names.values()
        if isinstance(binding.symbol, Frame)
        for inner in binding.symbol.names.values()
    ]
    return [*known, *inner_names, *more]
