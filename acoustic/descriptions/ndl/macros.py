"""Macros by name, global constants, and the macros that come with the program."""

import importlib.resources
from functools import cache

from acoustic.descriptions.ndl.parse import NODE_LISTS, parse_ndl
from acoustic.descriptions.ndl.syntax import Assignment, Macro, Name, NdlScript, Number, Statement
from acoustic.nodes.registry import registered_nodes
from readers.config.syntax import Source
from readers.errors import ConfigError

SHIPPED = ("default_macros.ndl", "recurrent_macros.ndl", "tdnnf_macros.ndl")


@cache
def function_names() -> dict[str, str]:
    """Return the names of all functions by lower-case name; they are reserved words (book 4.1.1.1)."""
    return {name.lower(): name for node in registered_nodes() for name in (node.type_name, *node.aliases)}


class MacroTable:
    """Macros and global constants by name, in any case.

    Parameters
    ----------
    parent : MacroTable, optional
        Searched for names that are not in this table. Calls inside its macros are looked up in the parent only.

    Attributes
    ----------
    notes : list of str
        A line for each macro that a later file defines again.
    """

    def __init__(self, parent: "MacroTable | None" = None):
        self.parent = parent
        self._macros: dict[str, Macro] = {}
        self._constants: dict[str, Assignment] = {}
        self.notes: list[str] = []

    def define(self, macro: Macro) -> None:
        """Add a macro; that of a later file replaces an earlier one, as in CNTK.

        Raises ConfigError if its name is taken in its file, or reserved.
        """
        name = macro.name.lower()
        if name in self._macros:
            first = self._macros[name].where
            if first.rpartition(":")[0] == macro.where.rpartition(":")[0]:
                raise ConfigError(f"{macro.where}: macro {macro.name} is defined already, at {first}; expected it once")
            self.notes.append(f"{macro.where}: macro {macro.name} replaces that of {first}")
        if name in function_names():
            raise ConfigError(f"{macro.where}: macro {macro.name} has a reserved name; expected another one")
        for parameter in macro.parameters:
            # Function names are permitted: the book's RBFF(input, ...) has one (4.1.2.1).
            if parameter.lower() in NODE_LISTS:
                raise ConfigError(f"{macro.where}: parameter {parameter} has a reserved name; expected another one")
        self._macros[name] = macro

    def load(self, script: NdlScript) -> None:
        """Add the macros and constants of a macro file. Raises ConfigError if it has other statements."""
        for statement in self.take(script):
            raise ConfigError(
                f"{statement.where}: {statement} among macros; expected macros and constants, and nodes in the section "
                "that is run"
            )

    def take(self, script: NdlScript) -> list[Statement]:
        """Add macros and constants, which all macros can use from then on, and return the other statements.

        Raises ConfigError for a constant that is assigned already.
        """
        other_statements: list[Statement] = []
        for macro in script.macros:
            self.define(macro)
        for statement in script.statements:
            if not isinstance(statement, Assignment) or not isinstance(statement.value, Number | Name):
                other_statements.append(statement)
                continue
            name = statement.name.lower()
            if name in self._constants:
                first = self._constants[name].where
                raise ConfigError(f"{statement.where}: {statement.name} is assigned already, at {first}; expected once")
            self._constants[name] = statement
        return other_statements

    def find(self, name: str) -> tuple[Macro, "MacroTable"] | None:
        """Return a macro and the table in which the calls of its body are looked up, None if there is none."""
        table: MacroTable | None = self
        while table is not None:
            if name.lower() in table._macros:
                return table._macros[name.lower()], table
            table = table.parent
        return None

    def constant(self, name: str) -> Assignment | None:
        """Return the assignment of a global constant, None if there is none."""
        table: MacroTable | None = self
        while table is not None:
            if name.lower() in table._constants:
                return table._constants[name.lower()]
            table = table.parent
        return None

    def names(self) -> list[str]:
        """Return the names of all macros, the parent's last."""
        own_names = [macro.name for macro in self._macros.values()]
        return own_names + (self.parent.names() if self.parent else [])


@cache
def shipped_macros() -> MacroTable:
    """Return the macros that come with the program. The table is shared: put a new one above it to add macros."""
    table = MacroTable()
    for name in SHIPPED:
        text = importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
        table.load(parse_ndl(Source.from_text(text, name)))
    return table
