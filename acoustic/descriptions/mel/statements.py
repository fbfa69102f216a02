"""The statements of a model editing script, which parse_script produces and an Editor runs."""

from dataclasses import dataclass, field

from acoustic.descriptions.mel.command_table import CommandSpec
from readers.config.syntax import Span


@dataclass(frozen=True)
class Command:
    """A call of an editing command, ``target = Name(arguments, option=value)``; texts are without quotes."""

    spec: CommandSpec
    name: str
    arguments: tuple[str, ...]
    options: dict[str, str]
    target: str
    where: str


@dataclass(frozen=True)
class Description:
    """A line of network description for the default model."""

    span: Span

    @property
    def where(self) -> str:
        return self.span.where


@dataclass(frozen=True)
class Snippet:
    """``name = [ ... ]``: a network description that creates a model of that name."""

    name: str
    span: Span
    where: str


Statement = Command | Description | Snippet


@dataclass
class MelScript:
    """The statements of a script in order, and the sections in its ``load=``, which hold macros."""

    statements: list[Statement] = field(default_factory=list)
    macros: list[Span] = field(default_factory=list)
