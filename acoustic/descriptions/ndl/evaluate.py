"""Evaluation of a network description on a network, as a whole or a few statements at a time.

The book describes passes over the script (5.2.3.1): nodes are created, connected and given their values. Here the first
pass (expand.py) plans every node in the order of the statements. Names are resolved after all of them are known, so a
name may be used before the line that defines it. Then connect.py creates the nodes.
Source: CNTK book, sections 4.1, 4.2.1.5 and 5.2.3.
"""

from acoustic.descriptions.ndl.cntk_options import Notes
from acoustic.descriptions.ndl.connect import Connection
from acoustic.descriptions.ndl.expand import Expansion
from acoustic.descriptions.ndl.macros import MacroTable, shipped_macros
from acoustic.descriptions.ndl.names import Names
from acoustic.descriptions.ndl.parse import parse_ndl
from acoustic.descriptions.ndl.plan import Frame, Planned, Reference
from acoustic.descriptions.ndl.syntax import NdlScript
from acoustic.network.network import SPECIAL_LISTS, Network
from acoustic.nodes.base import Node
from readers.config.syntax import Source, Span
from readers.config.values import did_you_mean
from readers.errors import ArgonautError, ConfigError

TAGS: dict[str, str | None] = {
    "feature": "features",
    "label": "labels",
    "criterion": "criteria",
    "criteria": "criteria",
    "eval": "evaluations",
    "evaluation": "evaluations",
    "output": "outputs",
    "multiseq": None,  # without effect: sequences are always kept apart
}


class Scope:
    """The names of a description, on a network that grows with every `evaluate`.

    Parameters
    ----------
    network : Network
        Its nodes may be used by name, in any case.
    macros : MacroTable, optional
        The macros that calls may use; by default those of the program.
    """

    def __init__(self, network: Network, macros: MacroTable | None = None):
        self.network = network
        self.macros = macros if macros is not None else MacroTable(shipped_macros())
        self._top = Frame("", self.macros)
        self._notes = Notes()

    @property
    def notes(self) -> list[str]:
        """A line for each argument without effect in what has been evaluated, with file and line."""
        return self._notes.lines()

    def evaluate(
        self, source: Source | Span | NdlScript, define_macros: bool = True, values: bool = True
    ) -> list[Node]:
        """Add the nodes of a script, or of a few statements, to the network.

        Names persist: later calls may use them, and none may be assigned twice.

        Parameters
        ----------
        source : Source, Span or NdlScript
        define_macros : bool
            Whether the script may define macros, which persist too.
        values : bool
            Whether parameters get initial values; false only checks the description.

        Returns
        -------
        list of Node
            Operands before users.

        Raises
        ------
        ArgonautError
            With file, line and the macro calls that led to it; network and names are then unchanged.
        """
        script = source if isinstance(source, NdlScript) else parse_ndl(source)
        if script.macros and not define_macros:
            macro = script.macros[0]
            raise ConfigError(
                f"{macro.where}: macro {macro.name} among in-line statements; expected it in a snippet or in ndlMacros"
            )
        for macro in script.macros:
            self.macros.define(macro)
        network = self.network
        names = dict(self._top.names)
        nodes = dict(network.nodes)
        shapes = dict(network.shapes)
        special = {name: list(members) for name, members in network.special().items()}
        try:
            expansion = Expansion(Names(network), self._notes)
            for statement in script.statements:
                expansion.statement(statement, self._top)
            new_nodes = Connection(expansion).make(values)
            self._mark(expansion)
        except ArgonautError:
            network.nodes = nodes
            network.shapes = shapes
            self._top.names = names
            for name in SPECIAL_LISTS:
                setattr(network, name, special[name])
            raise
        return new_nodes

    def find(self, name: str) -> Node | None:
        """Return the node of a name in any case: a variable, a dotted name inside a macro call, or a node's name.

        None if nothing has that name, or it is a number.
        """
        names = Names(self.network)
        symbol = names.lookup(self._top, name)
        target = names.resolve(symbol) if symbol is not None else None
        if isinstance(target, Planned):
            target = target.made
        return target if isinstance(target, Node) else None

    def _mark(self, expansion: Expansion) -> None:
        """Add the nodes of node arrays and the tagged nodes to the network's lists, each once."""
        for list_name, symbol in expansion.special:
            self._add(list_name, expansion.names.resolve(symbol), symbol)
        for tag, bearer in expansion.tags:
            tagged = self._list_of(tag, expansion.names)
            if tagged is not None:
                self._add(tagged, expansion.names.resolve(bearer), tag)

    def _add(self, list_name: str, found: Reference | Planned | Node, said: Reference) -> None:
        node = found.made if isinstance(found, Planned) else found
        where = said.frame.trace(said.expression.where)
        if not isinstance(node, Node):
            raise ConfigError(f"{where}: {said.expression} is a number; expected a node among the {list_name}")
        if list_name in ("features", "labels") and not node.is_input:
            raise ConfigError(f"{where}: {node.name} ({node.type_name}) among the {list_name}; expected an InputValue")
        members = getattr(self.network, list_name)
        if node.name not in members:
            members.append(node.name)

    def _list_of(self, tag: Reference, names: Names) -> str | None:
        """Return the list that a tag means, given as a word or as a variable that holds one."""
        word = tag.expression.text
        if not _is_tag(word):
            resolved = names.resolve(tag, word=True)
            word = resolved.expression.text if isinstance(resolved, Reference) else word
        if not _is_tag(word):
            # CNTK ignores a tag that it does not know; a network of its tests has tag="outputs".
            near = did_you_mean(word, TAGS)
            self._notes.add(tag.frame.trace(tag.expression.where), f"tag={word} has no effect{near}")
            return None
        return "evaluations" if word.lower().startswith("eval") else TAGS[word.lower()]


def _is_tag(word: str) -> bool:
    return word.lower() in TAGS or word.lower().startswith("eval")
