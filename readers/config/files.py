"""Where configuration text comes from: files, the files they include, and command line arguments, in order.

Source: CNTK book, sections 3.9.2 and 3.9.3.
"""

import os
import re
from pathlib import Path

from readers.common.text import read_lines
from readers.config.syntax import Source, strip_comment
from readers.errors import ConfigError

ARGUMENT = "command line argument"  # what places of values from the command line begin with
_INCLUDE = re.compile(r"\s*include\s*=(.*)", re.IGNORECASE)
_NAMED = re.compile(r"\s*(configFile|currentDirectory)\s*=(.*)", re.IGNORECASE)
# What a forgotten `configFile=` leaves behind: an argument without a value that looks like an option or a file.
_STRAY_ARGUMENT = re.compile(r"-|.*[./\\]")


class ConfigFiles:
    """Reads what the arguments of a command line name, and remembers which files were read already.

    names: the files that arguments named; warnings: includes that were left out because the file was in already.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.warnings: list[str] = []
        self._read_at: dict[str, str] = {}

    def read_argument(self, argument: str) -> list[Source]:
        """The text that one argument stands for; `currentDirectory=` changes the directory and stands for none."""
        place = f"{ARGUMENT} {argument!r}"
        match = _NAMED.fullmatch(argument)
        if match is None:
            if "=" not in argument and _STRAY_ARGUMENT.match(argument):
                raise ConfigError(f"{place}: no name=value; expected configFile=FILE or name=value")
            return [Source((strip_comment(line), place) for line in argument.split("\n"))]
        value = match.group(2)
        if match.group(1).lower() == "currentdirectory":
            try:
                os.chdir(value.strip().strip('"'))
            except OSError as fault:
                raise ConfigError(f"{place}: {fault.strerror}; expected a directory to change to") from fault
            return []
        names = self._split(value, place)
        self.names.extend(names)
        return [Source(self._read(name, place, ())) for name in names]

    def _read(self, name: str, place: str, reading: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
        """The lines of a file with its includes pasted in, comments stripped, each with its place.

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
            text = read_lines(name)
        except OSError as fault:
            raise ConfigError(f"{place}: {name}: {fault.strerror}; expected a readable file") from fault
        for number, line in enumerate(text, 1):
            here = f"{name}:{number}"
            line = strip_comment(line)
            match = _INCLUDE.fullmatch(line)
            if match is None:
                lines.append((line, here))
            else:
                for included in self._split(match.group(1), here):
                    lines.extend(self._include(included, here, reading))
        return lines

    def _include(self, name: str, place: str, reading: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
        """The lines of an included file, none when it was read before (book 3.9.3: only the first time counts).

        A relative name is looked for in the current directory, as CNTK does, then beside the file that includes it.
        """
        if not Path(name).exists():
            beside = Path(reading[-1][1]).parent / name
            name = str(beside) if beside.exists() else name
        real = os.path.realpath(name)
        loop = [open_name for open_real, open_name in reading]
        for index, (open_real, _) in enumerate(reading):
            if open_real == real:
                raise ConfigError(
                    f"{place}: includes itself: {' -> '.join([*loop[index:], name])}; expected includes that end"
                )
        if real in self._read_at:
            self.warnings.append(f"{place}: {name} was read already, at {self._read_at[real]}; not read again")
            return []
        return self._read(name, place, reading)

    @staticmethod
    def _split(value: str, place: str) -> list[str]:
        """The file names of a `+` list.  Names are needed before any value is known, so `$Name$` cannot stand here."""
        names = [name.strip().strip('"') for name in value.split("+")]
        if not all(names):
            raise ConfigError(f"{place}: empty file name in {value.strip()!r}; expected FILE or FILE+FILE...")
        if "$" in value:
            raise ConfigError(f"{place}: found $ in {value.strip()!r}; expected file names without references")
        return [name.replace("\\", "/") for name in names]
