"""The configuration language: nested blocks of names, whose values are converted when they are read.

    config = load_config(["configFile=base.cntk+exp.cntk", "TIMIT_Train=[SGD=[maxEpochs=5]]"])
    sgd = config.block("TIMIT_Train").block("SGD")
    sgd.int("maxEpochs"), sgd.ints("minibatchSize", "256")[3], sgd.where("maxEpochs")

Names are case-insensitive.  A name that is not set in a block is looked up in the enclosing blocks.  `$Name$` in a
value is replaced when the value is read, as seen from the block that sets the value.  A block of an enclosing block
(an SGD or reader block that several commands share) sees the names of the block from which it was opened first, as if
it were written there; CNTK achieves the same with its stack of open blocks (book 5.1.3.2).
Every value keeps the file and line it came from through layering, merging and substitution.
Source: CNTK book, sections 3.9 and 5.1.3.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar, overload

from readers.common.report import Figures
from readers.config.files import ARGUMENT, ARGUMENT_NAMES, ConfigFiles
from readers.config.scope import Chain, ConfigEntry, ConfigScope, shorten
from readers.config.syntax import Source, Span, inside_brackets, is_block, unquote, variables
from readers.config.values import (
    Schedule,
    did_you_mean,
    nearest,
    parse_bool,
    parse_choice,
    parse_float,
    parse_int,
    split_array,
)
from readers.errors import ConfigError

T = TypeVar("T")
AnyConfig = TypeVar("AnyConfig", bound="Config")
REQUIRED: Any = object()


@dataclass(frozen=True)
class UnknownName:
    """A name in a block that no option has.

    Attributes
    ----------
    name, where : str
        The name with those of the enclosing blocks, and "file:line".
    nearest : str or None
        The most similar known name, None if there is none.
    """

    name: str
    where: str
    nearest: str | None

    def __str__(self) -> str:
        hint = f"; did you mean {self.nearest}" if self.nearest else ""
        return f"{self.where}: {self.name} is not known here{hint}"


class BlockCycle(ConfigError):
    """A block contains itself."""


class Config(ConfigScope):
    """A block of the configuration.

    Each of the methods `text`, `path`, `int`, `float`, `bool`, `choice`, `array`, `ints`, `floats` takes a name and a
    default, and raises ConfigError with file and line if the value cannot be converted.  Without a default the name is
    required.  A default that is a string is converted like a value of the file, any other is returned unchanged.  A
    value that is the word `default` counts as not set, in this block and in the enclosing ones.

    Attributes
    ----------
    warnings : list of str
        Remarks about how the text was read, such as repeated includes that were ignored.
    found_outside : set of str
        Lower-case names, shared by all blocks, that were looked up and found in the outermost block.
    files : list of Path
        Files that `path` returned, in this block and in blocks opened from it.
    """

    def __init__(self, name: str = "", parent: Self | None = None, where: str = "command line"):
        super().__init__(name, parent, where)
        self.warnings: list[str] = []
        self.found_outside: set[str] = parent.found_outside if parent else set()
        self.files: list[Path] = []
        self._texts: list[tuple[int, int]] = []  # position of its text: source and offset of each piece

    @classmethod
    def from_text(cls, text: str, where: str = "text", parent: Self | None = None) -> Config:
        """Create a block from the text of a file without includes."""
        config = cls(parent=parent, where=where)
        config.merge(Source.from_text(text, where))
        return config

    # Inspection (ConfigScope has names, has_own, is_block, where, full_name, script, substitute)

    def has(self, name: str) -> bool:
        """Whether the name is set, in this block or an enclosing one, and not to the word `default`."""
        return self._value(name) is not None

    def blocks(self) -> Iterator[tuple[str, Config]]:
        """Yield (name, block) for the blocks that this block itself contains."""
        for name in self.names():
            if self.is_block(name):
                yield name, self.block(name)

    def sound_blocks(self) -> Iterator[tuple[str, Config]]:
        """Yield (name, block) for the blocks that can be read; one that nothing reads may hold any text."""
        for name in self.block_names():
            with contextlib.suppress(ConfigError):
                yield name, Config.block(self, name)  # CheckedConfig.block would record a fault

    def unknown(self, known: Iterable[str]) -> list[UnknownName]:
        """Return the names set in this block itself that are not among `known`.

        Names that the block refers to as `$Name$` are variables of the user and not included.
        """
        known = list(known)
        expected = {name.lower() for name in (*known, *self._asked())}
        return [
            UnknownName(self.full_name(entry.name), entry.where, nearest(entry.name, known))
            for key, entry in self._entries.items()
            if key not in expected
        ]

    def _asked(self) -> set[str]:
        """Return the names that values of this block and its inner blocks refer to as `$Name$`."""
        texts = [value.text for entry in self._entries.values() for value in entry.values]
        return {match.group(1) for text in texts for match in variables(text)}

    def misspelled(self, known: Collection[str], cutoff: float) -> list[str]:
        """Return a message for each plain value whose name resembles one of `known` that is not set.

        Names that are referred to as `$Name$` are variables of the user and not included.
        cutoff: required similarity, see `values.nearest`.
        """
        read = {name.lower() for name in known}
        known = [name for name in known if not self.has_own(name)]
        requested = {name.lower() for name in self._asked()}
        messages = []
        for key, entry in self._entries.items():
            candidates = [*known, *ARGUMENT_NAMES] if _from_arguments(entry) else known
            meant = nearest(entry.name, candidates, cutoff)
            if meant and key not in requested | read and not is_block(entry.value):
                messages.append(f"{entry.where}: {self.full_name(entry.name)} is not used; did you mean {meant}")
        return messages

    def without_effect(self, commands: Iterable[str], cutoff: float) -> list[str]:
        """Return a message for each name on the command line that has no effect.

        Such a name is misspelled, or an inner block sets it and hides the value of the command line.  Call this on the
        outermost block after the commands were read: names that were looked up and found there, or are referred to as
        `$Name$`, have an effect.
        commands: the blocks that run; other blocks with an action of their own do not.
        cutoff: required similarity of a misspelled name, see `values.nearest`.
        """
        references = self._asked()
        commands = {name.lower() for name in commands}
        used = {name.lower() for name in references} | commands | self.found_outside
        inner = [
            block for name, block in self.sound_blocks() if name.lower() in commands or not block.has_own("action")
        ]
        for block in inner:  # the list grows during the iteration
            inner += [within for _, within in block.sound_blocks()]
        usable = [*references, *(entry.name for entry in self._entries.values() if not _from_arguments(entry))]
        messages = []
        for key, entry in self._entries.items():
            if key in used or not _from_arguments(entry):
                continue
            if (setting := next((block for block in inner if block.has_own(key)), None)) is not None:
                path = setting.full_name().replace(".", "=[")
                close = "]" * (path.count("[") + 1)
                messages.append(
                    f"{entry.where}: {setting.full_name(entry.name)} is set in its block, which takes precedence; "
                    f"expected {path}=[{entry.name}={shorten(entry.value.text)}{close}"
                )
            elif meant := nearest(entry.name, usable, cutoff):
                messages.append(f"{entry.where}: {entry.name} is not used; did you mean {meant}")
        return messages

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Raise ConfigError for the first unknown name (see `unknown`), with the number of all unknown names."""
        unknown = self.unknown(known)
        if unknown:
            more = f" ({len(unknown)} such names in this block)" if len(unknown) > 1 else ""
            raise ConfigError(f"{unknown[0]}{more}")

    # Values

    def text(self, name: str, default: Any = REQUIRED) -> str:
        """The value as text, with references replaced and outer quotes removed."""
        return self._convert(name, default, lambda text, where, what: text)

    def path(self, name: str, default: Any = REQUIRED) -> Path:
        """The value as a file name; backslashes separate directories. An empty value counts as the default."""
        path = self._convert(
            name, default, lambda text, where, what: Path(text.replace("\\", "/")) if text else default
        )
        if isinstance(path, Path):
            for scope in self._around():
                scope.files.append(path)
        return path

    def int(self, name: str, default: Any = REQUIRED) -> int:
        """The value as an integer."""
        return self._convert(name, default, parse_int)

    def float(self, name: str, default: Any = REQUIRED) -> float:
        """The value as a number."""
        return self._convert(name, default, parse_float)

    def bool(self, name: str, default: Any = REQUIRED) -> bool:
        """The value as true or false."""
        return self._convert(name, default, parse_bool)

    def choice(self, name: str, choices: Sequence[str], default: Any = REQUIRED) -> str:
        """The value as one of `choices`, spelled as in `choices`; case does not count."""
        return self._convert(name, default, lambda text, where, what: parse_choice(text, choices, where, what))

    def array(self, name: str, default: Any = REQUIRED, some: str = "") -> list[str]:
        """The elements of an array as texts; see `values.split_array` for the syntax.

        some: description of the expected elements if an empty array is an error; "" allows one if there is a default.
        """
        elements = self._convert_array(name, default, lambda text, where, what: text, list)
        if some and not elements:
            raise ConfigError(f"{self.where(name)}: {self.full_name(name)} is empty; expected {some}")
        return elements

    def ints(self, name: str, default: Any = REQUIRED) -> Schedule:
        """The value as a schedule of integers."""
        return self._convert_array(name, default, parse_int, Schedule)

    def floats(self, name: str, default: Any = REQUIRED) -> Schedule:
        """The value as a schedule of numbers."""
        return self._convert_array(name, default, parse_float, Schedule)

    def block(self, name: str, default: Config | Any = REQUIRED) -> Config:
        """The block of that name, in this block or an enclosing one; the default if there is none."""
        definition = self._found(name)
        if definition is None:
            return self._missing(name, default)
        scope, entry = definition
        pieces = scope.pieces(entry)
        if not pieces:
            value = scope.resolve(entry)
            if value.text == "default":
                return self._missing(name, default)
            raise ConfigError(
                f"{entry.value.where}: {self.full_name(name)} is {shorten(value.text)!r}; expected a block [...]"
            )
        config = type(self)(entry.name, self, pieces[0].where)
        config._texts = [(id(piece.source), piece.start) for piece in pieces]
        around = [scope for scope in self._around() if scope._texts == config._texts]
        if len(around) > 1:  # a block may open a block of its own name from an enclosing one, once
            raise BlockCycle(
                f"{entry.value.where}: block {entry.name} contains itself: {config.full_name()}; expected no cycle"
            )
        for piece in pieces:
            config.merge(*inside_brackets(piece, "[{", ";"))
        return config

    def _around(self) -> Iterator[Self]:
        """Yield this block and those from which it was opened."""
        scope: Self | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def written(self, name: str) -> str:
        """The value of a name as a file would have it, quoted if needed, with the references that can be resolved."""
        definition = self.find(name)
        if definition is None:
            return str(self._missing(name, REQUIRED))
        try:
            plain = unquote(definition[0].resolve(definition[1])).text
        except ConfigError:
            return definition[1].value.text
        try:
            survives = Config.from_text(f"{name}={plain}").text(name, "") == plain
        except ConfigError:
            survives = False
        return plain if survives else f'"{plain}"'

    def _value(self, name: str) -> Span | None:
        """The resolved value with its quotes, None if it is not set."""
        definition = self._found(name)
        value = definition[0].resolve(definition[1]) if definition else None
        return None if value is None or value.text == "default" else value

    def _found(self, name: str) -> tuple[Self, ConfigEntry] | None:
        """The result of `find`; records the name if it was found in the outermost block."""
        definition = self.find(name)
        if definition and definition[0].parent is None:
            self.found_outside.add(name.lower())
        return definition

    def _target(self, reference: str, where: str, chain: Chain) -> tuple[Self, ConfigEntry]:
        self._found(reference)  # counts as used, also by a script in another file
        return super()._target(reference, where, chain)

    def _convert(self, name: str, default: Any, parse: Callable[[str, str, str], T]) -> T:
        value = self._value(name)
        if value is None:
            fallback: T | str = self._missing(name, default)
            return parse(fallback, "default", self.full_name(name)) if isinstance(fallback, str) else fallback
        if is_block(value):
            raise ConfigError(f"{value.where}: {self.full_name(name)} is a block; expected a plain value")
        text = unquote(value).text
        if not text and default is REQUIRED:
            raise ConfigError(f"{value.where}: {self.full_name(name)} is empty; expected a value")
        return parse(text, value.where, self.full_name(name))

    def _convert_array(
        self, name: str, default: Any, parse: Callable[[str, str, str], Any], collect: Callable[[Iterable[Any]], T]
    ) -> T:
        value = self._value(name)
        if value is None:
            fallback: T | str = self._missing(name, default)
            if not isinstance(fallback, str):
                return fallback
            value = Source([(fallback, "default")]).span
        what = self.full_name(name)
        if value.text.startswith("["):
            raise ConfigError(f"{value.where}: {what} is a block; expected an array, bare or in {{}}")
        # Quotes around a whole array are removed before it is split, as in CNTK: "$Words$:200" has two elements.
        parts = split_array(unquote(value), what)
        elements = collect(parse(element.text, element.where, what) for element in parts)
        if not elements and default is REQUIRED:
            raise ConfigError(f"{value.where}: {what} is empty; expected at least one element")
        return elements

    def _missing(self, name: str, default: T) -> T:
        if default is not REQUIRED:
            return default
        definition = self.find(name)
        if definition:
            raise ConfigError(
                f"{definition[1].value.where}: {self.full_name(name)} is set to default, and it has none; "
                f"expected {name}=..."
            )
        raise ConfigError(
            f"{self._where}: {self.full_name(name)} is not set, in this or an enclosing block; "
            f"expected {name}=...{did_you_mean(name, self.visible())}"
        )


class AskedConfig(Config):
    """A Config whose blocks share a set `asked` of all names that were looked up."""

    def __init__(self, name: str = "", parent: Self | None = None, where: str = "command line"):
        super().__init__(name, parent, where)
        self.asked: dict[str, str] = parent.asked if parent else {}

    def find(self, name: str) -> tuple[Self, ConfigEntry] | None:
        self.asked.setdefault(name.lower(), name)
        return super().find(name)


def _from_arguments(entry: ConfigEntry) -> bool:
    """Whether all values of a name come from the command line."""
    return entry.where.startswith(ARGUMENT) and all(value.where.startswith(ARGUMENT) for value in entry.values)


@overload
def load_config(arguments: Sequence[str]) -> Config: ...
@overload
def load_config(arguments: Sequence[str], config_type: type[AnyConfig]) -> AnyConfig: ...
def load_config(arguments: Sequence[str], config_type: type[Config] = Config) -> Config:
    """Load the configuration that a command line describes.

    Parameters
    ----------
    arguments : sequence of str
        `configFile=a+b`, `name=value` and `currentDirectory=dir`, processed from left to right; later values replace
        earlier ones.  The current directory of the process changes at once.
    config_type : type
        Class of the result: Config or a subclass.

    Returns
    -------
    Config
        The outermost block.

    Raises
    ------
    ConfigError
        With file and line, or the argument.

    References
    ----------
    CNTK book, sections 3.9 and 5.1.3.
    """
    files = ConfigFiles()
    config = config_type()
    for argument in arguments:
        for source in files.read_argument(argument):
            config.merge(source)
    config._where = "+".join(files.names) or config._where
    config.warnings.extend(files.warnings)
    return config


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    config = load_config([f"configFile={path}"])
    commands = config.array("command", [])
    figures: Figures = [("commands", " ".join(commands) or "none named")]
    for name, block in config.sound_blocks():
        if name.lower() in {command.lower() for command in commands} or block.has_own("action"):
            figures.append((name, _command_text(block)))
    idle_blocks = [name for name in config.block_names() if name not in dict(figures)]
    if idle_blocks:
        figures.append(("blocks", " ".join(idle_blocks)))
    return figures + [(f"+{name}", _shown_value(config, name)) for name in config.names() if not config.is_block(name)]


def _command_text(block: Config) -> str:
    parts = ["action " + " ".join(block.array("action", ["train"]))]
    parts += [f"{name} {_shown_value(block, name)}" for name in ("modelPath",) if block.find(name)]
    return ", ".join([*parts, *block.block_names()])


def _shown_value(block: Config, name: str) -> str:
    """Return a value with its references replaced, or as written if a reference cannot be resolved."""
    try:
        return block.text(name, "")
    except ConfigError:
        return block.written(name)
