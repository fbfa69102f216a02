"""HTK configuration files: lines `NAME = value` or `MODULE: NAME = value`; a comment begins with `#`.

Names are case-insensitive; a value may be quoted.  The names are interpreted elsewhere (features/config.py).
Source: HTK Book, configuration files.
"""

import re
from pathlib import Path

from readers.common.report import Figures
from readers.common.text import read_lines, unescape
from readers.errors import ConfigError

# Modules that HCopy uses.  A setting of another module, such as HLABEL: SOURCEFORMAT, does not apply to HCopy.
MODULES = ("HCOPY", "HPARM", "HWAVE", "HSIGP", "HSHELL", "HAUDIO", "HVQ", "HMATH", "HMEM")
_LINE = re.compile(r"(?:([A-Za-z]\w*)\s*:)?\s*([A-Za-z]\w*)\s*=\s*(.*)")


class HCopyConfig(dict[str, str]):
    """Settings of an HTK configuration: upper-case name -> text of its value, without quotes.

    Attributes
    ----------
    other_modules : list of (str, str, str, str)
        (module, name, value, where) of settings for modules that HCopy does not use.
    source : str
        The file or files that were read, for messages.
    """

    def __init__(self, source: str = "configuration"):
        super().__init__()
        self.source = source
        self._places: dict[str, str] = {}
        self.other_modules: list[tuple[str, str, str, str]] = []

    def where(self, name: str) -> str:
        """Return "file:line" of a setting, for messages; the name itself if it was not read from a file."""
        return self._places.get(name.upper(), name)

    def put(self, name: str, value: str, where: str) -> None:
        """Set a name, replacing any earlier value."""
        self[name.upper()] = value
        self._places[name.upper()] = where

    def merge(self, other: "HCopyConfig") -> None:
        """Add the settings of a later file, which take precedence."""
        for name, value in other.items():
            self.put(name, value, other.where(name))
        self.other_modules += other.other_modules
        self.source = f"{self.source}, {other.source}"


def read_hcopy_config(path: str | Path) -> HCopyConfig:
    """Read an HTK configuration file.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    HCopyConfig
        Upper-case name -> text of the value.  A setting with a module takes precedence over the same name without one.

    Raises
    ------
    ConfigError
        With file and line, for a malformed line and for a name that is set twice.

    References
    ----------
    HTK Book, configuration files.
    """
    config = HCopyConfig(f"{path}")
    modules: dict[str, str] = {}  # name -> the module that set it, "" for none
    for number, line in enumerate(read_lines(path, exact=True), 1):
        where = f"{path}:{number}"
        text = _cut_comment(line).strip()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if not match or not match.group(3):
            raise ConfigError(f"{where}: {text[:60]!r}; expected NAME = value or MODULE: NAME = value")
        module = (match.group(1) or "").upper()
        name = match.group(2).upper()
        value = _unquote(match.group(3).strip(), where)
        if module and module not in MODULES:
            config.other_modules.append((module, name, value, where))
            continue
        if name in modules:
            if bool(module) == bool(modules[name]):
                raise ConfigError(f"{where}: {name} is already set at {config.where(name)}; expected each name once")
            if not module:  # the setting with a module takes precedence
                continue
        modules[name] = module
        config.put(name, value, where)
    return config


def _cut_comment(line: str) -> str:
    mark = None
    for position, character in enumerate(line):
        if mark:
            mark = None if character == mark else mark
        elif character in "\"'":
            mark = character
        elif character == "#":
            return line[:position]
    return line


def _unquote(text: str, where: str) -> str:
    if text[0] not in "\"'":
        return text
    if len(text) < 2 or text[-1] != text[0]:
        raise ConfigError(f"{where}: quote {text[0]} in {text[:60]!r} is not closed; expected another {text[0]}")
    value = unescape(text[1:-1], exact=True)
    if "\0" in value:  # it may be the name of a file
        raise ConfigError(f"{where}: the escape \\000 in {text[:60]!r}; expected text")
    return value


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    config = read_hcopy_config(path)
    shown = ("SOURCEFORMAT", "TARGETKIND", "NUMCHANS", "NUMCEPS", "TARGETRATE", "WINDOWSIZE")
    figures: Figures = [("settings", len(config))]
    figures += [(name, config[name]) for name in shown if name in config]
    if config.other_modules:
        figures.append(("others", f"{len(config.other_modules)} settings of modules that take no part in HCopy"))
    return figures + [(f"+{name}", value) for name, value in config.items() if name not in shown]
