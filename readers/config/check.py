"""Reading a configuration for its faults: what is wrong with a name is noted, and the reading goes on with its default.

    config = load_config(arguments, CheckedConfig)
    options = config.check(lambda: training_options(config.block("Train").block("SGD")))  # None where that is no use
    config.findings.faults, config.unread()

Whoever reads options does so as ever and raises at the first fault.  Here the name to blame is then taken as not set
and the reading done again, until there is no fault or one that no name can be blamed for.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from readers.common.faults import Findings
from readers.config.config import REQUIRED, Config
from readers.config.syntax import variables
from readers.config.values import nearest
from readers.errors import ArgonautError, ConfigError

T = TypeVar("T")
# What a required name reads as that is missing or bad: a number, a text, a list and a switch at once.
STAND_IN = "1"
CLOSE = 0.9  # how much alike names must be to be taken for one another where nothing else says that one is wrong


class Reported(ConfigError):
    """The fault is among the findings already, and there is no going on."""


class _Shared:
    """What all blocks of a configuration know together.

    bad: full names (lower case) that are taken as not set; asked: (block, name) that were asked for in this reading;
    names: all that were ever asked for; scopes: every block that was opened, by full name.
    """

    def __init__(self) -> None:
        self.findings = Findings()
        self.bad: set[str] = set()
        self.asked: list[tuple[CheckedConfig, str]] = []
        self.names: dict[str, str] = {}
        self.scopes: dict[str, CheckedConfig] = {}


class CheckedConfig(Config):
    """A Config that gathers faults in `findings`; see the module."""

    def __init__(self, name: str = "", parent: "CheckedConfig | None" = None, where: str = "command line"):
        super().__init__(name, parent, where)
        self._shared: _Shared = parent._shared if parent else _Shared()
        self._shared.scopes[self.full_name().lower()] = self

    @property
    def findings(self) -> Findings:
        return self._shared.findings

    def check(self, make: Callable[[], T]) -> T | None:
        """What `make` gives; None if a fault keeps it from giving anything.  Call it on the outermost block.

        make: reads options, starting from the outermost block each time it is called.
        """
        while True:
            self._shared.asked.clear()
            try:
                return make()
            except Reported:
                return None
            except ConfigError as fault:
                blamed = self._blame(str(fault))
                if blamed in self._shared.bad:  # follows from what stands in for it
                    return None
                self.findings.add(fault)
                if blamed is None:
                    return None
                self._shared.bad.add(blamed)
            except (ArgonautError, OSError) as fault:
                self.findings.add(fault)
                return None

    def is_sound(self, block: str) -> bool:
        """Whether nothing was wrong with the names of a block, given by its full name."""
        prefix = block.lower() + "."
        return not any(name.startswith(prefix) for name in self._shared.bad)

    def unread(self) -> Iterator[str]:
        """A message for each name that nobody asked for and that is spelled much like one somebody asked for."""
        used = {match.group(1).lower() for scope in self._shared.scopes.values() for match in scope._references()}
        for scope in self._shared.scopes.values():
            for entry in scope._entries.values():
                name = entry.name.lower()
                if name in self._shared.names or name in used:
                    continue
                meant = nearest(entry.name, self._shared.names.values(), CLOSE)
                if meant and not scope.has_own(meant):
                    full = scope.full_name(entry.name)
                    yield f"{entry.where}: {full} is read by nothing; did you mean {meant}"

    def _references(self) -> Iterator:
        for entry in self._entries.values():
            for value in entry.values:
                yield from variables(value.text)

    def _blame(self, message: str) -> str | None:
        """The full name, in lower case, of what was asked for and stands at the place that the message begins with."""
        found = ""
        for scope, name in self._shared.asked:
            full, entry = scope.full_name(name), scope.find(name)
            for place in (scope.where(name), entry[1].where if entry else None):
                named = message.startswith(f"{place}: ") and message[len(place) + 2 :].split(" ")[0].rstrip(":;,")
                if named and named.lower() in (full.lower(), name.lower()) and len(full) > len(found):
                    found = full
        return found.lower() or None

    # What is different from Config

    def find(self, name: str):
        self._shared.names.setdefault(name.lower(), name)
        return super().find(name)

    def unknown(self, known):
        known = list(known)
        self._shared.names.update((name.lower(), name) for name in known)
        unknown = [one for one in super().unknown(known) if one.name.lower() not in self._shared.bad]
        self._shared.asked += [(self, one.name.rpartition(".")[2]) for one in unknown]
        return unknown

    def _value(self, name: str):
        self._shared.asked.append((self, name))
        return None if self._is_bad(name) else super()._value(name)

    def _convert(self, name: str, default: Any, parse) -> Any:
        convert = super()._convert
        return self._noting(name, lambda: convert(name, default, parse))

    def _convert_array(self, name: str, default: Any, parse, collect) -> Any:
        convert = super()._convert_array
        return self._noting(name, lambda: convert(name, default, parse, collect))

    def _noting(self, name: str, convert: Callable[[], Any]) -> Any:
        """A value that does not convert is noted; then, being bad, it converts as its default does."""
        while True:
            try:
                return convert()
            except ConfigError as fault:
                if self._is_bad(name):
                    raise Reported(str(fault)) from fault
                self.findings.add(fault)
                self._shared.bad.add(self.full_name(name).lower())

    def _missing(self, name: str, default: Any) -> Any:
        if default is not REQUIRED:
            return default
        if self._is_bad(name):
            return STAND_IN
        return super()._missing(name, default)

    def block(self, name: str, default: Any = REQUIRED) -> Any:
        try:
            block = super().block(name, default)
        except ConfigError as fault:
            self.findings.add(fault)
            raise Reported(str(fault)) from fault
        if block is STAND_IN:
            raise Reported(f"{self.full_name(name)} is no block")
        return block

    def _is_bad(self, name: str) -> bool:
        return self.full_name(name).lower() in self._shared.bad
