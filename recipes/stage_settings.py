"""The settings that a stage records, because its result depends on them; see `recipes.stages.Stage`."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from readers.config.config import Config, load_config
from readers.config.scope import ConfigEntry
from readers.config.syntax import is_block, variables
from readers.errors import ConfigError

# Directories, which may be moved, lists that earlier stages make, and settings that do not change the result.
NOT_RECORDED = {
    name.lower()
    for name in (
        *("ConfigDir", "DataDir", "ExpDir", "RunDir", "ScriptDir", "WorkDir"),
        *("TrainList", "TrainLabels", "SenoneLabels", "SenoneList"),
        *("numCPUThreads", "traceLevel", "numMBsToShowResult", "firstMBsToShowResult", "keepCheckPointFiles"),
        *("keepModelFiles", "extendTraining"),
    )
}
# Names of settings of SGD by which the values of an epoch depend on the number of epochs, or on jobs.
NOT_EXTENDED = ("finallearningrate", "autoadjust", "paralleltrain")
NETWORK_FILES = (".ndl", ".mel")


def file_settings(*paths: Path | None) -> dict[str, str]:
    """Return the checksums of files that a stage reads; paths that are None are left out."""
    settings: dict[str, str] = {}
    for path in filter(None, paths):
        name = f"checksum of {path.name}"
        settings[name] = settings.get(name, "") + _checksum(path)  # files of the same name, in their order
    return settings


def joint_checksum(files: Mapping[str, Path]) -> str:
    """Return one checksum of the names and the content of many files; recordings take about a second per gigabyte."""
    return text_checksum(f"{name} {_checksum(path)}" for name, path in files.items())


def text_checksum(lines: Iterable[str]) -> str:
    """Return the checksum of a text."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def cntk_settings(arguments: Sequence[object]) -> dict[str, str]:
    """Return the settings that the commands of a configuration can read, by their full names.

    Blocks of commands that do not run are left out, and variables that only such blocks refer to.

    arguments: those of `cntk`, with the directories that the values refer to and `command`, unless the file has it.
    Raises ConfigError if the configuration cannot be read.
    """
    config = load_config([str(argument) for argument in arguments])
    commands = {name.lower() for name in config.array("command")}
    values = {name.lower(): dict(_values(config, name)) for name in config.names()}
    references = {name: _references(config, name) for name in values}
    variables_of_any = set().union(*references.values())
    other_commands = {name for name in values if name not in commands and _is_command(config, name)}
    waiting = [name for name in values if name not in other_commands | variables_of_any]
    used: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in values and name not in used:
            used.add(name)
            waiting += references[name]
    return {
        key: text for name, settings in values.items() if name in used - NOT_RECORDED for key, text in settings.items()
    }


def extends_training(before: dict[str, str], now: dict[str, str]) -> bool:
    """Whether a training with the settings `before` is the first part of one with the settings `now`.

    It is if the settings are those of one training and nothing else, `maxEpochs` is larger, and all others are equal,
    except schedules that have the same values for the epochs of the shorter training.
    """
    if before.keys() != now.keys() or sum(name.lower().endswith(".action") for name in now) != 1:
        return False
    parts = {name: name.lower().split(".") for name in now}
    if any(part in NOT_EXTENDED for path in parts.values() for part in path):
        return False
    changed = [name for name in now if before[name] != now[name]]
    lengths = [name for name in changed if parts[name][-2:] == ["sgd", "maxepochs"]]
    if len(lengths) != 1 or not all(parts[name][-2:-1] == ["sgd"] for name in changed):
        return False
    try:
        epochs, longer = (load_config([f"n={settings[lengths[0]]}"]).int("n") for settings in (before, now))
        return epochs < longer and all(
            _first_values(before[name], epochs) == _first_values(now[name], epochs)
            for name in changed
            if name not in lengths
        )
    except ConfigError:  # no number, or a reference
        return False


def _first_values(text: str, epochs: int) -> list[float]:
    schedule = load_config([f"values={text}"]).floats("values")
    return [schedule[epoch] for epoch in range(epochs)]


def _entry(config: Config, name: str) -> ConfigEntry:
    """Return the entry of one of the names that the configuration has."""
    location = config.find(name)
    assert location is not None
    return location[1]


def _is_command(config: Config, name: str) -> bool:
    try:
        return config.is_block(name) and config.block(name).has_own("action")
    except ConfigError:  # a block that no command reads may contain any text
        return is_block(_entry(config, name).value)


def _references(config: Config, name: str) -> set[str]:
    """Return the lower-case names that occur as `$Name$` in the values of a name, also in replaced parts of a block."""
    texts = [value.text for value in _entry(config, name).values]
    return {match.group(1).lower() for text in texts for match in variables(text)}


def _values(config: Config, name: str) -> Iterator[tuple[str, str]]:
    """Yield (full name, text) for a name of a block or, if it is a block itself, for the names in it."""
    entry = _entry(config, name)
    try:
        inner = config.block(name) if config.is_block(name) else None
    except ConfigError:  # a script, a block that no command reads, or a reference to a name that is set later
        inner = None
    if inner is not None:
        for within in inner.names():
            if within.lower() not in NOT_RECORDED:
                yield from _values(inner, within)
        return
    text = " ".join(entry.value.text.split())
    if text.lower().endswith(NETWORK_FILES):
        path = config.path(name)
        if path.is_file():
            text = f"{path.name} with checksum {_checksum(path)}"
    yield config.full_name(entry.name), text


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
