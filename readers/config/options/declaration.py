"""The declaration of an option: name, type, default, unit, range and meaning."""

import math
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import MISSING, Field, dataclass, field, replace
from numbers import Integral, Number, Real
from pathlib import Path
from typing import Any, Literal

from readers.config.config import REQUIRED, Config
from readers.config.values import did_you_mean
from readers.errors import ConfigError

SCHEDULE, LIST = "schedule", "list"  # kinds of options with several values: one for each epoch, or any number
KINDS = {int: (Integral, "an integer"), float: (Real, "a number"), str: (str, "text"), Path: (Path, "a path")}
METAVARS = {int: "N", float: "X", str: "TEXT", Path: "FILE"}
MOST_INTEGER = 2**31 - 1  # of an option without a bound of its own: kernels count in 32 bits
Way = Literal["name", "key", "flag"]  # into a job: Python, a configuration, the command line
DECLARED = "option"  # key of the metadata of a field


@dataclass(frozen=True)
class Range:
    """The numbers that an option may be; None: no bound on that side."""

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None

    def __contains__(self, value: float) -> bool:
        return (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        if self.least is not None and self.most is not None and math.isfinite(self.most):
            return f"{self.least:.10g} to {self.most:.10g}"
        bounds = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        return ", ".join(f"{words} {bound:.10g}" for words, bound in bounds.items() if bound not in (None, math.inf))


@dataclass(frozen=True, kw_only=True)
class Option:
    """The declaration of an option, as `option` makes it.

    Attributes
    ----------
    name : str
        Name of the field: that of the parameter in Python.
    help : str
        What it means.
    type : type
        int, float, bool, str, Path, or what `parse` returns.
    kinds : tuple of type
        All types of a value in Python, such as int and str for a number or a word.
    takes_none : bool
        Whether the program may give None, even if a configuration must set it.
    default : object
        REQUIRED if it has none.
    several : str
        SCHEDULE or LIST if it has several values, else "".
    unit : str
    range : Range
    choices : tuple of str
    check : callable or None
        Whether a value is in range, where no Range says it; `expected` describes it.
    expected : str
    key : str
        Name in a configuration.
    other_keys : tuple of str
        Its other names there.
    own : bool
        Whether only the block itself sets it, no block around.
    flags : tuple of str
        Names on the command line; one without a dash is a positional argument.
    metavar : str
        What stands for the value in the help of the command line.
    heading : str
        Title of the group of options that begins with this one, "" if the group goes on; further lines describe it.
    parse : callable or None
        Converts text to the value.
    separator : str
        What stands between several values on the command line; "": each has a flag.
    in_blocks, on_command_line : bool
        Whether a configuration and the command line can set it.
    """

    name: str
    help: str
    type: Any = str
    kinds: tuple[Any, ...] = ()
    takes_none: bool = False
    default: Any = REQUIRED
    several: str = ""
    unit: str = ""
    range: Range = Range()
    choices: tuple[str, ...] = ()
    check: Callable[[Any], bool] | None = None
    expected: str = ""
    key: str = ""
    other_keys: tuple[str, ...] = ()
    own: bool = False
    flags: tuple[str, ...] = ()
    metavar: str = ""
    heading: str = ""
    parse: Callable[[str], Any] | None = None
    separator: str = ""
    in_blocks: bool = True
    on_command_line: bool = True

    @property
    def flag(self) -> str:
        """The long flag, for messages."""
        return next((flag for flag in self.flags if flag.startswith("--")), self.flags[0])

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is REQUIRED

    def set_by(self, block: Config) -> str:
        """Return the name under which a block, or else one around it, sets the option; "" if none does."""
        keys = sorted((self.key, *self.other_keys), key=lambda key: not block.has_own(key))
        return next((key for key in keys if block.has(key) and (not self.own or block.has_own(key))), "")

    def describe(self) -> str:
        """Return the values that it may have, such as "at least 0 frames"; "" for any."""
        unit = re.sub(r"(?<=ch)es$|s$", "", self.unit) if self.range == Range(least=1) else self.unit
        return self.expected or " or ".join(self.choices) or f"{self.range} {unit}".strip()

    def fault_of(self, value: Any) -> str | None:
        """Return what is wrong with a value, or with each value of several, None if it is in range."""
        if value is None and (self.default is None or self.takes_none):
            return None
        if self.several and self.default and not value:
            return f"is empty; expected {self.describe() or 'a value'}"
        for single in value if self.several else (value,):
            if self.choices and not (isinstance(single, str) and single in self.choices):
                close = did_you_mean(single, self.choices) if isinstance(single, str) else ""
                return f"is {text_of(single)}; expected {self.describe()}{close}"
            if self.type is bool and not (isinstance(single, Hashable) and single in (True, False)):
                return f"is {text_of(single)}; expected true or false"
            if self.kinds and not _is_one_of(single, self.kinds):
                return f"is {text_of(single)}; expected {' or '.join(KINDS[kind][1] for kind in self.kinds)}"
            if isinstance(single, Path) and not _is_file_name(single):
                return f"is {str(single)!r}; expected a path that the system can have"
            if self.type in (int, float) and (text := self._fault_of_number(single)):
                return text
            if self.check is not None and not self.check(single):
                return f"is {text_of(single)}; expected {self.expected}"
        return None

    def _fault_of_number(self, number: float) -> str | None:
        is_finite = -sys.float_info.max <= number <= sys.float_info.max  # no float is as large as some integers
        if self.type is float and not is_finite and number not in (self.default, self.range.most):
            bounds = self.describe()
            shown = f"is {number}" if isinstance(number, float) else "is too large"
            return f"{shown}; expected a finite number{bounds and f', {bounds}'}"
        if self.type is int and self.range.most is None and number > MOST_INTEGER:
            return f"is {number}; expected at most {MOST_INTEGER}"
        return None if number in self.range else f"is {text_of(number)}; expected {self.describe()}"


def _is_file_name(path: Path) -> bool:
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _is_one_of(value: Any, kinds: Iterable[Any]) -> bool:
    return not isinstance(value, bool) and any(isinstance(value, KINDS[kind][0]) for kind in kinds)


def text_of(value: Any) -> str:
    """Return a value as messages have it: a number, a text or a path itself, of anything else the type."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str | bytes):
        return repr(value)
    return str(value) if value is None or isinstance(value, Number | Path) else type(value).__name__


def option(  # noqa: PLR0913 (the keywords are what a declaration says)
    default: Any = MISSING,
    help: str = "",
    *,
    unit: str = "",
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    check: Callable[[Any], bool] | None = None,
    expected: str = "",
    cntk: str | None = "",
    own: bool = False,
    flag: str | None = "",
    metavar: str = "",
    heading: str = "",
    parse: Callable[[str], Any] | None = None,
    separator: str = "",
) -> Any:
    """Declare a field of Options.

    Parameters
    ----------
    default : optional
        Its default; without one the option is required.
    help : str
        What it means, without its default and range.
    unit : str
        Of its value, in the plural.
    least, above, most, below : float, optional
        Its range, of each value if it has several.
    check, expected
        A range that no bounds describe, and its description.
    cntk : str or None
        Names in a configuration separated by blanks, if it is not that of the field in camel case; None: no
        configuration sets it.
    own : bool
        Whether it counts only in its own block, because the same name means something else in the blocks around.
    flag : str or None
        Names on the command line separated by blanks, if they are not that of the field with dashes; None: none.
    metavar : str
        What stands for the value in the help, such as FILE.
    heading : str
        Title of the group of options that this one begins, in further lines a description.
    parse : callable, optional
        Converts the text of the command line or of a configuration to the value; raises ConfigError.
    separator : str
        What stands between several values on the command line, such as a comma, or a blank: `--mmf macros hmmdefs`.
    """
    bounds = Range(least, above, most, below)
    key, *other_keys = (cntk or "").split() or [""]
    declared = Option(
        name="", help=help, unit=unit, range=bounds, check=check, expected=expected, key=key,
        other_keys=tuple(other_keys), own=own, flags=tuple((flag or "").split()), metavar=metavar, heading=heading,
        parse=parse, separator=separator, in_blocks=cntk is not None, on_command_line=flag is not None,
    )  # fmt: skip
    return field(default=default, metadata={DECLARED: declared})


def given(default: Any = MISSING, help: str = "") -> Any:
    """Declare a field of Options that the program sets, neither a configuration nor a command line.

    Parameters
    ----------
    default : optional
    help : str
        What it means.
    """
    return option(default, help, cntk=None, flag=None)


class OptionFault(ConfigError):
    """The value of an option is out of range, or contradicts others.

    Attributes
    ----------
    key : str
        Name in a configuration.
    """

    def __init__(self, option: Option | str, text: str, options: Iterable[Option] = ()):
        """Describe what is wrong with an option: "is -1; expected at least 0 frames".

        options: the options whose names the text contains in braces, "is given beside {state_list}".
        """
        self._option = option
        self._text = text
        self._options = tuple(options)
        self.key = option.key if isinstance(option, Option) else option
        super().__init__(self.message("name"))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (_names_of(self._option), self._text, tuple(map(_names_of, self._options)))

    def message(self, way: Way) -> str:
        """Return the message for a way in."""
        name = getattr(self._option, way) if isinstance(self._option, Option) else self._option
        return f"{name} {with_names(self._text, self._options, way)}"

    def located(self, block: Config) -> ConfigError:
        """Return the fault with file, line and full name of the option in the block that sets it."""
        key = (self._option.set_by(block) if isinstance(self._option, Option) else "") or self.key
        return ConfigError(f"{block.where(key)}: {block.full_name(key)} {with_names(self._text, self._options, 'key')}")


def _names_of(option: Option | str) -> Option | str:
    """Return a declaration with the names alone: the functions of one have no copy in another process."""
    if isinstance(option, str):
        return option
    names = {"name": option.name, "key": option.key, "other_keys": option.other_keys, "flags": option.flags}
    return Option(help=option.help, own=option.own, default=None, **names)  # type: ignore[arg-type]


def with_names(text: str, options: Iterable[Option], way: Way) -> str:
    """Return a text with the names of options, for a way in, in place of those of their fields in braces."""
    names = {declared.name: getattr(declared, way) for declared in options}
    return re.sub(r"\{(\w+)\}", lambda match: names.get(match[1], match[0]), text) if "{" in text else text


def complete(declared: Option, of: "Field[Any]", hint: Any) -> Option:
    """Return a declaration with what name, default and type hint of its field tell."""
    first, *other_words = of.name.split("_")
    single, several, choices = _type_of(hint)
    required = of.default is MISSING and of.default_factory is MISSING
    default = REQUIRED if required else None if of.default is MISSING else of.default  # None: that of a group
    no_switch = single is bool and default is True
    return replace(
        declared,
        name=of.name,
        type=single,
        kinds=_kinds_of(hint),
        takes_none=types.NoneType in typing.get_args(hint),
        several=several,
        choices=choices,
        default=default,
        key=declared.key or first + "".join(word.capitalize() for word in other_words),
        flags=declared.flags or ("--" + no_switch * "no-" + of.name.replace("_", "-"),),
        metavar=declared.metavar or ("" if choices else METAVARS.get(single, "")),
    )


def _type_of(hint: Any) -> tuple[Any, str, tuple[str, ...]]:
    """Return the type of one value, whether there are several, and the choices, of a type hint."""
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        inner = [argument for argument in arguments if argument is not types.NoneType]
        if len(inner) > 1 and any(typing.get_origin(argument) is Literal for argument in inner):
            return str, "", ()  # a word or a number: the class converts and checks it
        return _type_of(Path if Path in inner else inner[0])
    if origin is Literal:
        return str, "", arguments
    if origin is Sequence:
        return arguments[0], SCHEDULE, ()
    if origin is tuple:
        return _type_of(arguments[0])[0], LIST, _type_of(arguments[0])[2]
    return hint, "", ()


def _kinds_of(hint: Any) -> tuple[Any, ...]:
    """Return the types of one value; () for those that the class of the options checks itself."""
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        kinds = tuple(_kinds_of(argument) for argument in arguments if argument is not types.NoneType)
        return sum(kinds, ()) if all(kinds) else ()
    if origin is Literal:
        return (str,)
    if origin in (Sequence, tuple):
        return _kinds_of(arguments[0]) if typing.get_origin(arguments[0]) is not tuple else ()
    return (hint,) if hint in KINDS else ()
