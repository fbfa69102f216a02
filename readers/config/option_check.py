"""Checks of a configuration block: unknown names, values out of range."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, field, fields
from typing import Any, ClassVar

from readers.config.config import Config
from readers.config.values import Schedule
from readers.errors import ConfigError


class OptionFault(ConfigError):
    """A value is out of range; `key` is its name in a configuration."""

    def __init__(self, key: str, text: str):
        super().__init__(f"{key}: {text}")
        self.key, self.text = key, text


# Type of an option: the method of Config that reads it.
READ_BY = {int: "int", float: "float", bool: "bool", str: "text", Sequence[int]: "ints", Sequence[float]: "floats"}


def positive(value: float) -> bool:
    """Return whether a number is finite and above 0."""
    return 0 < value < math.inf


def not_negative(value: float) -> bool:
    """Return whether a number is finite and not below 0."""
    return 0 <= value < math.inf


def option(
    name: str, default: Any = MISSING, fits: Callable[[Any], bool] = lambda value: True, expected: str = ""
) -> Any:
    """Declare a field of KeyedOptions.

    Parameters
    ----------
    name : str
        Name of the option in a configuration.
    default : optional
        Its default; without one the option is required. A tuple declares a schedule.
    fits : callable, optional
        Whether a value, or each value of a schedule, is in range.
    expected : str
        The range, for messages.
    """
    return field(default=default, metadata={"name": name, "fits": fits, "expected": expected})


class KeyedOptions:
    """Base class of dataclasses whose fields are options of a configuration, as far as `option` declares them.

    Attributes
    ----------
    keys : dict
        Field -> (name in a configuration, method of Config that reads it).
    """

    keys: ClassVar[dict[str, tuple[str, str]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = {name: one.metadata["name"] for name, one in vars(cls).items() if isinstance(one, Field) and one.metadata}
        cls.keys = cls.keys | {name: (key, READ_BY[cls.__annotations__[name]]) for name, key in own.items()}

    def __post_init__(self) -> None:
        """Make schedules of the options that have a tuple as default, and check the range of each option."""
        for one in fields(self):
            value, is_schedule = getattr(self, one.name), isinstance(one.default, tuple)
            if is_schedule:
                value = Schedule(value if isinstance(value, Sequence) else (value,))
                object.__setattr__(self, one.name, value)
            if one.metadata:
                name, fits, expected = (one.metadata[key] for key in ("name", "fits", "expected"))
                if is_schedule and one.default and not value:
                    raise OptionFault(name, f"no value; expected {expected}")
                for found in value if is_schedule else (value,):
                    if not fits(found):
                        raise OptionFault(name, f"{found}; expected {expected}")

    @classmethod
    def values_in(cls, block: Config) -> dict[str, Any]:
        """Return field -> value for the options that a block sets."""
        return {field: getattr(block, kind)(key) for field, (key, kind) in cls.keys.items() if block.has(key)}

    def require(self, field: str, fine: bool, expected: str) -> None:
        """Raise OptionFault with the configuration's name of the option unless `fine`."""
        if not fine:
            raise OptionFault(self.keys[field][0], f"{getattr(self, field)}; expected {expected}")


@contextmanager
def located_faults(block: Config) -> Iterator[None]:
    """Turn an OptionFault into a ConfigError that names file, line and full name of the option."""
    try:
        yield
    except OptionFault as fault:
        raise ConfigError(f"{block.where(fault.key)}: {block.full_name(fault.key)}: {fault.text}") from None


def check_keys(config: Config, known: Iterable[str], not_built: Mapping[str, str]) -> None:
    """Raise ConfigError for the first name of a block that is not known.

    known: names in the spelling of the CNTK book.
    not_built: name of an unsupported option -> the feature it belongs to, for the message.
    Only the names of the block itself are checked, because names of enclosing blocks may be meant for others.
    """
    later = {name.lower(): what for name, what in not_built.items()}
    for unknown in config.unknown(known):
        what = later.get(unknown.name.rpartition(".")[2].lower())
        if what:
            raise ConfigError(f"{unknown.where}: {unknown.name} belongs to {what}, which is not supported")
        raise ConfigError(str(unknown))


def idle_notes(config: Config, without_effect: Mapping[str, str]) -> list[str]:
    """Return a note for each name of a block that is accepted without effect.

    without_effect: name -> the reason.
    """
    return [
        f"{config.where(name)}: {config.full_name(name)} has no effect: {why}"
        for name, why in without_effect.items()
        if config.has_own(name)
    ]


def at_least(config: Config, name: str, value: int, least: int) -> int:
    """Return `value`, the option `name` of a block. Raises ConfigError unless least <= value < 2^31."""
    if not least <= value < 1 << 31:
        expected = f"at least {least}" if value < least else "less than 2147483648"
        raise ConfigError(f"{config.where(name)}: {config.full_name(name)} is {value}; expected {expected}")
    return value
