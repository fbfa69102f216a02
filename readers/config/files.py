"""The sources of configuration text, in order: files, the files they include, and command line arguments.

Source: CNTK book, sections 3.9.2 and 3.9.3.
"""

import os
import re
from pathlib import Path

from readers.common.text import read_lines
from readers.config.syntax import Source, strip_comment
from readers.errors import ConfigError

ARGUMENT = "command line argument"  # prefix of the places of values from the command line
_INCLUDE = re.compile(r"\s*include\s*=(.*)", re.IGNORECASE)
ARGUMENT_NAMES = ("configFile", "currentDirectory")  # settings of the command line only
_NAMED = re.compile(rf"\s*({'|'.join(ARGUMENT_NAMES)})\s*=(.*)", re.IGNORECASE)
# An argument without a value that looks like an option or a file: `configFile=` was probably forgotten.
_STRAY_ARGUMENT = re.compile(r"-|.*[./\\]")


class ConfigFiles:
    """Reads the files that the arguments of a command line name, each file once.

    names: the files that arguments named.
    warnings: includes that were ignored because the file had already been read.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.warnings: list[str] = []
        self._read_at: dict[str, str] = {}

    def read_argument(self, argument: str) -> list[Source]:
        """Return the text of one argument; `currentDirectory=` changes the directory and has no text."""
        origin = f"{ARGUMENT} {argument!r}"
        match = _NAMED.fullmatch(argument)
        if match is None:
            if "=" not in argument and _STRAY_ARGUMENT.match(argument):
                raise ConfigError(f"{origin}: no name=value; expected configFile=FILE or name=value")
            return [Source((strip_comment(line), origin) for line in argument.split("\n"))]
        value = match.group(2)
        if match.group(1).lower() == "currentdirectory":
            try:
                os.chdir(value.strip().strip('"'))
            except OSError as fault:
                raise ConfigError(f"{origin}: {fault.strerror}; expected a directory to change to") from fault
            return []
        names = self._split(value, origin)
        self.names.extend(names)
        return [Source(self._read(name, origin, ())) for name in names]

    def _read(self, name: str, place: str, reading: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
        """Return (line, place) of a file, with includes inserted and comments stripped.

        reading: (real path, name) of the files that are being read, outermost first.
        """
        real = os.path.realpath(name)
        if real in self._read_at:
            raise ConfigError(
                f"{place}: {name} was read already, at {self._read_at[real]}; expected each file to be named once"
            )
        self._read_at[real] = place
        reading = (*reading, (real, name))
        lines: list[tuple[str, str]] = []
        try:
            text = read_lines(name, exact=True)
        except OSError as fault:
            raise ConfigError(f"{place}: {name}: {fault.strerror}; expected a readable file") from fault
        for number, line in enumerate(text, 1):
            origin = f"{name}:{number}"
            line = strip_comment(line)
            match = _INCLUDE.fullmatch(line)
            if match is None:
                lines.append((line, origin))
            else:
                for included in self._split(match.group(1), origin):
                    lines.extend(self._include(included, origin, reading))
        return lines

    def _include(self, name: str, place: str, reading: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
        """Return (line, place) of an included file; empty if it was read before, as only the first include counts
        (3.9.3).

        A relative name is looked up in the current directory, as in CNTK, then beside the including file.
        """
        if not Path(name).exists():
            beside = Path(reading[-1][1]).parent / name
            name = str(beside) if beside.exists() else name
        real = os.path.realpath(name)
        loop = [open_name for open_real, open_name in reading]
        for index, (open_real, _) in enumerate(reading):
            if open_real == real:
                raise ConfigError(
                    f"{place}: includes itself: {' -> '.join([*loop[index:], name])}; expected includes without a cycle"
                )
        if real in self._read_at:
            self.warnings.append(f"{place}: {name} was read already, at {self._read_at[real]}; not read again")
            return []
        return self._read(name, place, reading)

    @staticmethod
    def _split(value: str, place: str) -> list[str]:
        """Return the file names of a `+` list.

        `$Name$` is not allowed here, because the names are needed before any value is known.
        """
        names = [name.strip().strip('"') for name in value.split("+")]
        if not all(names):
            raise ConfigError(f"{place}: empty file name in {value.strip()!r}; expected FILE or FILE+FILE...")
        if "$" in value:
            raise ConfigError(f"{place}: found $ in {value.strip()!r}; expected file names without references")
        return [name.replace("\\", "/") for name in names]
