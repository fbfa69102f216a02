"""Reading a configuration to find all of its faults.

    config = load_config(arguments, CheckedConfig)
    options = config.check(lambda: training_options(config.block("Train").block("SGD")))  # None if it failed
    config.findings.faults, config.unread()

Code that reads options raises an error at the first fault.  CheckedConfig records the fault, treats the name that
caused it as not set and reads the options again, until there is no further fault or none that a name has caused.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, TypeVar

from readers.common.faults import Findings
from readers.config.config import REQUIRED, Config, UnknownName
from readers.config.scope import ConfigEntry
from readers.config.syntax import Span, variables
from readers.config.values import nearest
from readers.errors import ArgonautError, ConfigError

T = TypeVar("T")
# Value of a required name that is missing or bad; it converts to a number, a text, a list and a switch.
STAND_IN = "1"
CLOSE = 0.9  # similarity of two names above which one is reported as a misspelling of the other


class Reported(ConfigError):
    """The fault is already among the findings, and the reading cannot continue."""


class _Shared:
    """State that all blocks of a configuration share.

    bad: full names (lower case) that are treated as not set.
    asked: (block, name) of the lookups of this reading.
    names: lower-case name -> name, of all lookups so far.
    scopes: lower-case full name -> block, of all blocks that were opened.
    """

    def __init__(self) -> None:
        self.findings = Findings()
        self.bad: set[str] = set()
        self.asked: list[tuple[CheckedConfig, str]] = []
        self.names: dict[str, str] = {}
        self.scopes: dict[str, CheckedConfig] = {}


class CheckedConfig(Config):
    """A Config that collects faults in `findings` instead of raising them.

    The options are read inside `check`, which is called on the outermost block; see the module's description.

    Attributes
    ----------
    findings : Findings
        The faults found so far.
    """

    def __init__(self, name: str = "", parent: Self | None = None, where: str = "command line"):
        super().__init__(name, parent, where)
        self._shared: _Shared = parent._shared if parent else _Shared()
        self._shared.scopes[self.full_name().lower()] = self

    @property
    def findings(self) -> Findings:
        """The faults found so far."""
        return self._shared.findings

    def check(self, make: Callable[[], T]) -> T | None:
        """Return `make()`, or None if a fault prevents it.  Call it on the outermost block.

        make: reads options, starting from the outermost block; it may be called several times.
        """
        while True:
            self._shared.asked.clear()
            try:
                return make()
            except Reported:
                return None
            except ConfigError as fault:
                blamed = self._blame(str(fault))
                if blamed in self._shared.bad or self._follows(str(fault)):  # caused by what replaces a bad value
                    return None
                self.findings.add(fault)
                if blamed is None:
                    return None
                self._shared.bad.add(blamed)
            except (ArgonautError, OSError) as fault:
                self.findings.add(fault)
                return None

    def _follows(self, message: str) -> bool:
        """Return whether a fault of a block, such as that it has no file, names a setting of it that is bad."""
        subject, *words = re.findall(r"[\w.]+", message.partition(": ")[2].lower()) or [""]
        return any(bad.startswith(f"{subject}.") and bad.rpartition(".")[2] in words for bad in self._shared.bad)

    def is_sound(self, block: str) -> bool:
        """Whether no fault was found in the block, or the setting, with this full name."""
        prefix = block.lower() + "."
        return not any(f"{name}.".startswith(prefix) for name in self._shared.bad)

    def unread(self) -> Iterator[str]:
        """Yield a message for each name that was never looked up and resembles a name that was."""
        used = {match.group(1).lower() for scope in self._shared.scopes.values() for match in scope._references()}
        for scope in self._shared.scopes.values():
            for entry in scope._entries.values():
                name = entry.name.lower()
                if name in self._shared.names or name in used:
                    continue
                meant = nearest(entry.name, self._shared.names.values(), CLOSE)
                if meant and not scope.has_own(meant):
                    full = scope.full_name(entry.name)
                    yield f"{entry.where}: {full} is not used; did you mean {meant}"

    def _references(self) -> Iterator[re.Match[str]]:
        for entry in self._entries.values():
            for value in entry.values:
                yield from variables(value.text)

    def _blame(self, message: str) -> str | None:
        """Return the full name, in lower case, of the lookup at the place with which the message begins."""
        longest = ""
        for scope, name in self._shared.asked:
            full = scope.full_name(name)
            entry = scope.find(name)
            for position in (scope.where(name), entry[1].where if entry else None):
                if position is None or not message.startswith(f"{position}: "):
                    continue
                named = message[len(position) + 2 :].split(" ")[0].rstrip(":;,")
                if named.lower() in (full.lower(), name.lower()) and len(full) > len(longest):
                    longest = full
        return longest.lower() or None

    # Overridden methods of Config

    def find(self, name: str) -> tuple[Self, ConfigEntry] | None:
        self._shared.names.setdefault(name.lower(), name)
        return super().find(name)

    def unknown(self, known: Iterable[str]) -> list[UnknownName]:
        known = list(known)
        self._shared.names.update((name.lower(), name) for name in known)
        unknown = [mistake for mistake in super().unknown(known) if mistake.name.lower() not in self._shared.bad]
        self._shared.asked += [(self, mistake.name.rpartition(".")[2]) for mistake in unknown]
        return unknown

    def has(self, name: str) -> bool:
        has = super().has
        return bool(self._noting(name, lambda: has(name)))

    def _value(self, name: str) -> Span | None:
        self._shared.asked.append((self, name))
        return None if self._is_bad(name) else super()._value(name)

    def _convert(self, name: str, default: Any, parse: Callable[[str, str, str], Any]) -> Any:
        convert = super()._convert
        return self._noting(name, lambda: convert(name, default, parse))

    def _convert_array(
        self, name: str, default: Any, parse: Callable[[str, str, str], Any], collect: Callable[[Iterable[Any]], Any]
    ) -> Any:
        convert = super()._convert_array
        return self._noting(name, lambda: convert(name, default, parse, collect))

    def _noting(self, name: str, convert: Callable[[], Any]) -> Any:
        """Look a value up; if that fails, record the fault and take the name as not set instead."""
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
            block: Any = super().block(name, default)
        except ConfigError as fault:
            self.findings.add(fault)
            raise Reported(str(fault)) from fault
        if block is STAND_IN:
            raise Reported(f"{self.full_name(name)} is not a block")
        return block

    def _is_bad(self, name: str) -> bool:
        return self.full_name(name).lower() in self._shared.bad
