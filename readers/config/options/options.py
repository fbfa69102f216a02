"""The base class of options, and how a block of a configuration or a command line gives them."""

import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import MISSING, Field, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

from readers.config.config import Config
from readers.config.options.declaration import DECLARED, LIST, SCHEDULE, Option, OptionFault, complete, option, text_of
from readers.config.values import Schedule
from readers.errors import ConfigError

RAISES = "\n\nRaises\n"
READ_BY = {int: "int", float: "float", bool: "bool", str: "text", Path: "path"}  # the method of Config for a type


def group(options: "type[Options]", **others: Any) -> Any:
    """Declare a field of Options that is a group of other options: a block, or flags among those of the command.

    Parameters
    ----------
    options : type of Options
        Its options.
    **others : object
        Further keywords of `option`.
    """
    return field(default_factory=options, metadata=option(help="", **others).metadata)


def like(options: "type[Options]", name: str, default: Any = MISSING, **changes: Any) -> Any:
    """Declare a field of Options that is an option of another class, too.

    Parameters
    ----------
    options : type of Options
        The other class.
    name : str
        Its field.
    default : optional
        Instead of its default.
    **changes : object
        What differs otherwise, by the attributes of Option, such as `help`.
    """
    declared = {each.name: each for each in fields(options)}[name]
    default = declared.default if default is MISSING else default
    return field(default=default, metadata={DECLARED: replace(declared.metadata[DECLARED], **changes)})


class Options:
    """Base class of dataclasses whose fields are options, as far as `option`, `group` or `given` declare them.

    A subclass is a frozen dataclass.  The section Parameters of its docstring is made from the declarations; a section
    Raises about values out of range is added unless there is one.

    Raises
    ------
    OptionFault
        For a value out of range.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # of subclasses
    _documented: ClassVar[dict[str, tuple[Option, Any]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        hints = vars(cls).get("__annotations__", {})
        inherited = [base._documented for base in reversed(cls.__bases__) if issubclass(base, Options)]
        cls._documented = {name: entry for entries in inherited for name, entry in entries.items()} | {
            name: (replace(value.metadata[DECLARED], default=value.default), hints[name])
            for name, value in vars(cls).items()
            if isinstance(value, Field) and value.metadata
        }
        if cls.__doc__ and cls._documented:
            cls.__doc__ = _with_parameters(cls.__doc__, cls._documented)

    def __post_init__(self) -> None:
        """Make schedules of numbers and tuples, and check the range of each option."""
        for declared in self.declared():
            value = getattr(self, declared.name)
            if is_group(declared):
                is_unset = value is None and self.__dataclass_fields__[declared.name].default is None
                if not is_unset and not isinstance(value, declared.type):
                    raise OptionFault(declared, f"is {text_of(value)}; expected {declared.type.__name__}")
                continue
            if declared.several and not (value is None and declared.default is None):
                values = (_as_declared(declared, single) for single in several(value))
                value = Schedule(values) if declared.several == SCHEDULE else tuple(values)
            else:
                value = _as_declared(declared, value)
            object.__setattr__(self, declared.name, value)
            if text := declared.fault_of(value):
                raise OptionFault(declared, text)

    @classmethod
    def declared(cls) -> tuple[Option, ...]:
        """Return the declarations of the options, in order; that of a group has the type of its options."""
        return _declared(cls)  # type: ignore[arg-type]  # mypy takes classes for unhashable

    @classmethod
    def declaration(cls, name: str) -> Option:
        """Return the declaration of the field `name`, of the options or of their groups, rather than of a group."""
        return min((declared for declared in cls.with_groups() if declared.name == name), key=is_group)

    @classmethod
    def with_groups(cls) -> Iterator[Option]:
        """Yield the declarations of the options, and of those in groups."""
        for declared in cls.declared():
            yield declared
            if is_group(declared):
                yield from declared.type.with_groups()

    @classmethod
    def option_keys(cls) -> list[str]:
        """Return the names of the options in a configuration."""
        return [key for option in cls.declared() if option.in_blocks for key in (option.key, *option.other_keys)]

    @classmethod
    def values_in(cls, block: Config, without: Collection[str] = ()) -> dict[str, Any]:
        """Return field -> value for the options that a block sets, except for the fields in `without`.

        Raises ConfigError for a value that cannot be converted, and for a required option that is not set.
        """
        values = {}
        for declared in cls.declared():
            if not declared.in_blocks or declared.name in without:
                continue
            if (key := declared.set_by(block)) or declared.required:
                with located_faults(block):
                    values[declared.name] = _value_in(block, declared, key or declared.key)
        return values

    @classmethod
    def from_block(cls, block: Config, **values: Any) -> Self:
        """Return the options that a block of a configuration sets, and those given as `values`.

        Raises ConfigError with file, line and full name of an option that is missing or out of range.
        """
        with located_faults(block):
            return cls(**(cls.values_in(block, values) | values))

    def to_flags(self) -> list[str]:
        """Return the words of the command line for the options that differ from their defaults."""
        entries = [(each, _words_of(each, value)) for each, value in self.changed() if each.on_command_line]
        flags = [word for declared, words in entries for word in words if declared.flag.startswith("-")]
        positional = [word for declared, words in entries for word in words if not declared.flag.startswith("-")]
        if any(word.startswith("-") and word != "-" for word in positional):
            return [*flags, "--", *positional]
        return [word for _, words in entries for word in words]

    def to_settings(self, complete: bool = False) -> list[str]:
        """Return `name=value` of a configuration for the options that differ from their defaults, or for all.

        Raises ConfigError for a text that no configuration can have.
        """
        settings: list[str] = []
        for declared in self.declared():
            value = getattr(self, declared.name)
            if not declared.in_blocks or value in (None, ()):
                continue
            if isinstance(value, Options):
                settings.append(f"{declared.key}=[{'; '.join(value.to_settings(complete))}]")
            elif complete or declared.required or value != declared.default:
                settings.append(f"{declared.key}={_setting_of(value)}")
        return settings

    def changed(self) -> Iterator[tuple[Option, Any]]:
        """Yield (declaration, value) of the options that differ from their defaults, those of groups too."""
        for declared in self.declared():
            value = getattr(self, declared.name)
            if isinstance(value, Options):
                yield from value.changed()
            elif value != declared.default:
                yield declared, value

    def require(self, name: str, fine: bool, text: str) -> None:
        """Raise OptionFault for the field `name` unless `fine`; text: what is wrong and what was expected."""
        if not fine:
            raise OptionFault(self.declaration(name), text, self.with_groups())


def several(value: Any) -> Iterable[Any]:
    """Return the values that an option with several was given; a single value stands for itself."""
    is_single = isinstance(value, str | bytes | Mapping | Set) or not isinstance(value, Iterable)
    return (value,) if is_single or _is_scalar(value) else value


def _as_declared(declared: Option, value: Any) -> Any:
    """Return a value with the type of the option, if one is a path and the other a text; NumPy's scalars as Python's.

    An empty text is no path: it stands for None where that is the default, such as --report "$REPORT".
    """
    if _is_scalar(value):
        value = value.item()
    if declared.type is Path and isinstance(value, str):
        is_unset = not value and declared.default is None and not declared.several
        return None if is_unset else Path(value) if value else value
    return str(value) if declared.type is str and isinstance(value, Path) else value


def _is_scalar(value: Any) -> bool:
    """Whether a value is a scalar of NumPy, which this module does not import."""
    return getattr(value, "shape", None) == () and hasattr(value, "item")


def is_group(declared: Option) -> bool:
    """Whether an option is a group of others."""
    return isinstance(declared.type, type) and issubclass(declared.type, Options)


@contextmanager
def located_faults(block: Config) -> Iterator[None]:
    """Turn an OptionFault into a ConfigError that names file, line and full name of the option.

    Parameters
    ----------
    block : Config
        The block that the options come from.
    """
    try:
        yield
    except OptionFault as fault:
        raise fault.located(block) from None


@cache
def _declared(options: type[Options]) -> tuple[Option, ...]:
    hints = typing.get_type_hints(options)
    return tuple(complete(each.metadata[DECLARED], each, hints[each.name]) for each in fields(options) if each.metadata)


def _value_in(block: Config, declared: Option, key: str) -> Any:
    """Return the value of an option in a block; an empty text is the default if there is one.  Raises ConfigError."""
    default = () if declared.required else (declared.default,)
    if is_group(declared):
        return declared.type.from_block(block.block(key))
    if declared.several == SCHEDULE:
        return getattr(block, f"{READ_BY[declared.type]}s")(key)
    if declared.several == LIST:
        if declared.type in (int, float):
            values = getattr(block, f"{READ_BY[declared.type]}s")(key, *default)
        else:
            values = block.array(key, *default)
        return values and tuple(map(_converter(declared), values))
    if declared.parse is not None:
        text = block.text(key, *default)
        is_free = declared.type is str and not declared.choices  # the only kind of value that a text may be empty for
        return _converter(declared)(text) if text or is_free else declared.default
    if declared.choices:
        return block.choice(key, declared.choices, *default)
    return getattr(block, READ_BY[declared.type])(key, *default)


def _converter(declared: Option) -> Callable[[str], Any]:
    """Return what converts a text to a value of an option, and raises OptionFault."""

    def convert(text: str) -> Any:
        try:
            return (declared.parse or declared.type)(text)
        except ConfigError as fault:
            raise OptionFault(declared, f"is {text!r}: {fault}") from None

    return convert


def _words_of(declared: Option, value: Any) -> list[str]:
    """Return the words of the command line that give an option a value."""
    if declared.type is bool:
        is_refused = declared.default is None and not value
        return [f"{declared.flag[:2]}no-{declared.flag[2:]}" if is_refused else declared.flag]
    values = [_word_of(single) for single in (value if declared.several else (value,))]
    if declared.separator == " ":
        return [declared.flag, *values]
    if declared.separator:
        values = [declared.separator.join(values)]
    if not declared.flag.startswith("-"):
        return values
    flag = declared.flag
    return [word for text in values for word in ([f"{flag}={text}"] if text.startswith("-") else [flag, text])]


def _word_of(value: Any) -> str:
    """Return a value as a word of the command line; a path that begins with a dash is no flag."""
    text = str(value)
    return f"./{text}" if isinstance(value, Path) and text.startswith("-") and text != "-" else text


def _setting_of(value: Any) -> str:
    """Return a value as a configuration has it."""
    if isinstance(value, tuple):
        return f"{{{':'.join(map(_setting_of, value))}}}"
    if isinstance(value, str | Path):
        if set(str(value)) & set('"\n'):
            raise ConfigError(f"{str(value)!r}: has a quotation mark or a line break; expected a text without")
        return f'"{value}"'
    return str(value).lower()


def _with_parameters(text: str, documented: Mapping[str, tuple[Option, Any]]) -> str:
    """Return a docstring with the options in its section Parameters, after what that has, before the section Raises."""
    entries = "\n".join(_entry(name, *declaration) for name, declaration in documented.items())
    summary, title, raises = inspect.cleandoc(text).partition(RAISES)
    title = RAISES
    raises = raises or "------\nOptionFault\n    For a value out of range."
    begin = "\n" if "\nParameters\n" in summary else "\n\nParameters\n----------\n"
    return f"{summary}{begin}{entries}{title}{raises}\n"


def _entry(name: str, declared: Option, hint: Any) -> str:
    """Return the entry of an option in a docstring."""
    kind = hint if isinstance(hint, str) else hint.__name__ if isinstance(hint, type) else str(hint)
    kind = re.sub(r"\w+\.(?=\w)", "", kind)  # without modules
    values = declared.describe()
    says_more = declared.default is not False and declared.default not in (MISSING, None, "", ())
    if says_more and not isinstance(declared.default, Options) and "default" not in declared.help:
        kind += f", default {declared.default!r}"
    text = re.sub(r"\{(\w+)\}", r"\1", declared.help)
    text = "`".join(part if number % 2 else part.replace("*", r"\*") for number, part in enumerate(text.split("`")))
    is_of_refusal = declared.default is True and declared.on_command_line and not declared.in_blocks
    text = f"False: {text}" if is_of_refusal else text[:1].upper() + text[1:]  # the help of a flag --no-NAME
    text += f" ({values})" if values else ""
    body = textwrap.fill(f"{text}.", 116, initial_indent="    ", subsequent_indent="    ") if text else ""
    return f"{name} : {kind}\n{body}".rstrip()
