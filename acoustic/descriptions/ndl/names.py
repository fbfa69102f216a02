"""What names stand for: variables in any case, dots into the calls of macros, nodes that are there already."""

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
    """Lookup over a network; a frame without a caller, the script itself, sees the network's nodes too."""

    def __init__(self, network: Network):
        self.network = network
        self._depth = 0
        self._constants: dict[tuple[str, str], Reference] = {}
        self.refresh()

    def refresh(self) -> None:
        """Take note of the names that the network has now."""
        self._folded: dict[str, list[str]] = {}
        for name in self.network.nodes:
            self._folded.setdefault(name.lower(), []).append(name)

    def existing(self, name: str) -> Node | None:
        """The network's node of a name, in any case of letters unless two names differ in nothing else."""
        nodes = self.network.nodes
        if name in nodes:
            return nodes[name]
        same = self._folded.get(name.lower(), [])
        return nodes.get(same[0]) if len(same) == 1 else None

    def is_gone(self, symbol: Symbol) -> bool:
        """Whether it stood for a node that has been made and is no longer in the network."""
        while isinstance(symbol, Frame) and symbol.result is not None:
            symbol = symbol.result
        node = symbol.made if isinstance(symbol, Planned) else None
        return node is not None and self.network.nodes.get(node.name) is not node

    def lookup(self, frame: Frame, name: str) -> Symbol | None:
        """What a name stands for as seen from a frame; None when nothing there has that name."""
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise ConfigError(f"names that refer to each other more than {MAX_DEPTH} deep; expected fewer")
            found = self._local(frame, name.lower())
            if found is not None and not self.is_gone(found):
                return found
            constant = frame.macros.constant(name)
            if constant is not None:
                # The same object each time, so that constants which stand for each other in a circle are noticed.
                assert not isinstance(constant.value, Call)
                new = Reference(constant.value, frame, constant.name)
                return self._constants.setdefault((frame.path, constant.name.lower()), new)
            return self.existing(name) if frame.caller is None else None
        finally:
            self._depth -= 1

    def _local(self, frame: Frame, name: str) -> Symbol | None:
        """A name of the frame itself, or, after dots, of the calls of macros that its names stand for."""
        while name not in frame.names:
            dot = name.rfind(".")
            while dot > 0 and name[:dot] not in frame.names:
                dot = name.rfind(".", 0, dot)
            inner = self._called(frame.names[name[:dot]].symbol) if dot > 0 else None
            if inner is None:
                return None
            frame, name = inner, name[dot + 1 :]
        return frame.names[name].symbol

    def _called(self, symbol: Symbol) -> Frame | None:
        """The call of a macro that a symbol is another name for."""
        seen: set[int] = set()
        while isinstance(symbol, Reference):
            if isinstance(symbol.expression, Number) or id(symbol) in seen:
                return None
            seen.add(id(symbol))
            found = self.lookup(symbol.frame, symbol.expression.text)
            if found is None:
                return None
            symbol = found
        return symbol if isinstance(symbol, Frame) else None

    def resolve(self, symbol: Symbol, word: bool = False) -> Reference | Planned | Node:
        """What a symbol stands for in the end: a number, a node; with `word` also a name that nothing has.

        Raises ConfigError for a name that nothing has, and for names that stand for each other in a circle.
        """
        seen: set[int] = set()
        while isinstance(symbol, Reference | Frame):
            if isinstance(symbol, Frame):
                assert symbol.result is not None
                symbol = symbol.result
                continue
            name = symbol.expression
            if isinstance(name, Number):
                return symbol
            where = symbol.frame.trace(name.where)
            if id(symbol) in seen:
                raise ConfigError(f"{where}: {name.text} stands for itself; expected names that lead to a value")
            seen.add(id(symbol))
            found = self._found(symbol, name.text, where)
            if found is None and word:
                return symbol
            if found is None:
                raise ConfigError(self._unknown(symbol.frame, name.text, where))
            symbol = found
        return symbol

    def _found(self, symbol: Reference, name: str, where: str) -> Symbol | None:
        try:
            return self.lookup(symbol.frame, name)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None

    def _unknown(self, frame: Frame, name: str, where: str) -> str:
        known = [binding.name for binding in frame.names.values()]
        if frame.macro is None:
            text, more = "expected a variable or a node", self.network.nodes
        else:
            text, more = f"expected a parameter or variable of macro {frame.macro.name}", ()
        if name.lower() in (one.lower() for one in frame.macros.names()):
            text += f"; {name} is a macro: {name}(...) calls it"
            return f"{where}: {shorten(name)} is not known; {text}"
        return f"{where}: {shorten(name)} is not known; {text}{did_you_mean(name, _dotted(known, frame, more))}"


def _dotted(known: list[str], frame: Frame, more: Iterable[str]) -> list[str]:
    """The names to suggest: those of the frame, one level of those inside its calls, the network's."""
    inside = [
        f"{binding.name}.{inner.name}"
        for binding in frame.names.values()
        if isinstance(binding.symbol, Frame)
        for inner in binding.symbol.names.values()
    ]
    return [*known, *inside, *more]
