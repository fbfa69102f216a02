"""The statements of a model editing script, which parse_script produces and an Editor runs."""

from dataclasses import dataclass, field

from acoustic.descriptions.mel.command_table import CommandSpec
from readers.config.syntax import Span


@dataclass(frozen=True)
class Command:
    """A call of an editing command, ``target = Name(arguments, option=value)``.

    Attributes
    ----------
    spec : CommandSpec
    name : str
        The command as it is written in the script.
    arguments : tuple of str
        Without quotes.
    options : dict of str to str
        Option -> value, without quotes.
    target : str
        The name before ``=``, "" for none.
    where : str
        "file:line".
    """

    spec: CommandSpec
    name: str
    arguments: tuple[str, ...]
    options: dict[str, str]
    target: str
    where: str


@dataclass(frozen=True)
class Description:
    """A line of network description for the default model.

    Attributes
    ----------
    span : Span
    """

    span: Span

    @property
    def where(self) -> str:
        """The place, `file:line`, of the line."""
        return self.span.where


@dataclass(frozen=True)
class Snippet:
    """``name = [ ... ]``: a network description that creates a model of that name.

    Attributes
    ----------
    name : str
    span : Span
        The description.
    where : str
        "file:line".
    """

    name: str
    span: Span
    where: str


Statement = Command | Description | Snippet


@dataclass
class MelScript:
    """A script of the model editing language.

    Attributes
    ----------
    statements : list of Command, Description or Snippet
    macros : list of Span
        The sections of its ``load=``, which define macros.
    """

    statements: list[Statement] = field(default_factory=list)
    macros: list[Span] = field(default_factory=list)
