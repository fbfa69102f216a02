"""Description files: their sections, and which of them are loaded and run (CNTK book 3.2.2)."""

import re
from dataclasses import dataclass
from pathlib import Path

from acoustic.descriptions.ndl.macros import MacroTable, shipped_macros
from acoustic.descriptions.ndl.parse import parse_ndl, split_sections
from acoustic.descriptions.ndl.syntax import Assignment, Name, NdlScript
from readers.common.report import Figures
from readers.common.text import read_text
from readers.config.config import Config
from readers.config.options import Options, option
from readers.config.syntax import Source, Span
from readers.config.values import did_you_mean
from readers.errors import ConfigError

_SLASHES = re.compile(r"(?:^|(?<=\s))//")  # CNTK's own descriptions have such comments besides those with #


@dataclass(frozen=True, kw_only=True)
class MacroOptions(Options):
    """The option that names macro files."""

    macro_files: str = option("", "macro files, separated by +", cntk="ndlMacros")


@dataclass(frozen=True)
class DescriptionFile:
    """A file of sections, or of statements only.

    Attributes
    ----------
    path : str
    sections : dict
        Name in lower case to (name, content).
    script : NdlScript
        The statements outside of sections.
    load, run : tuple of Name
        The section names in the file's own `load` and `run`.
    """

    path: str
    sections: dict[str, tuple[str, Span]]
    script: NdlScript
    load: tuple[Name, ...] = ()
    run: tuple[Name, ...] = ()

    def section(self, name: Name) -> NdlScript:
        """Return the script of a section. Raises ConfigError."""
        entry = self.sections.get(name.text.lower())
        if entry is None:
            near = did_you_mean(name.text, [section_name for section_name, _ in self.sections.values()])
            raise ConfigError(f"{name.where}: {self.path} has no section {name.text}; expected one{near}")
        return parse_ndl(entry[1])


def read_description(path: Path, where: str, scope: Config) -> DescriptionFile:
    """Read a description file, replacing ``$name$`` by the values in `scope`.

    `where` is the place that names the file, for messages. Raises ConfigError.
    """
    try:
        text = read_text(path, exact=True)
    except OSError as fault:
        raise ConfigError(f"{where}: {path}: {fault.strerror}; expected a readable file") from fault
    text = "\n".join(_without_slashes(line) for line in text.split("\n"))
    sections, script = split_sections(scope.substitute(Source.from_text(text, str(path))))
    named: dict[str, tuple[Name, ...]] = {}
    statements = []
    for statement in script.statements:
        key = statement.name.lower()
        if key in ("load", "run") and isinstance(statement, Assignment) and isinstance(statement.value, Name):
            named[key] = section_names(statement.value.text, statement.where)
        else:
            statements.append(statement)
    return DescriptionFile(str(path), sections, NdlScript(tuple(statements), script.macros), **named)


def _without_slashes(line: str) -> str:
    """Return a line without the comment that `//` begins, at its start or after a blank, and not in quotes."""
    quoted = False
    checked = 0
    for match in _SLASHES.finditer(line):
        quoted ^= line.count('"', checked, match.start()) % 2 == 1
        checked = match.start()
        if not quoted:
            return line[: match.start()]
    return line


def section_names(text: str, where: str) -> tuple[Name, ...]:
    """Return the names in a list ``a:b``."""
    return tuple(Name(part.strip(), True, where) for part in text.split(":") if part.strip())


def read_macros(config: Config) -> MacroTable:
    """Return the macros of the files in `ndlMacros`, a list ``a.ndl+b.ndl``, above those of the program.

    Parameters
    ----------
    config : Config
        A block; `ndlMacros` may be set in it or in an enclosing block.

    Returns
    -------
    MacroTable

    Raises
    ------
    ConfigError
        With file and line.
    """
    table = MacroTable(shipped_macros())
    where = config.where("ndlMacros")
    for name in MacroOptions.from_block(config).macro_files.split("+"):
        if name.strip():
            path = Path(name.strip().replace("\\", "/"))
            description = read_description(path, where, config)
            table.load(description.script)
            # A macro file may have sections; without load= all of them are loaded.
            names = description.load or tuple(
                Name(section_name, True, where) for section_name, _ in description.sections.values()
            )
            for section in names:
                table.load(description.section(section))
    return table


def summary(path: str) -> Figures:
    """Return the figures of a network description for `argonaut info`."""
    sections, script = split_sections(Source.from_text(read_text(path, exact=True), str(Path(path))))
    return [
        ("sections", " ".join(name for name, _ in sections.values()) or "none"),
        ("statements", len(script.statements)),
        ("macros", " ".join(macro.name for macro in script.macros) or "none"),
    ]
