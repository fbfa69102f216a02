"""The job that finds every fault of a configuration and of the data that it names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acoustic.actions.base import CommonSettings
from acoustic.actions.top_level import (
    ALIKE,
    TOP_NAMES,
    TopOptions,
    old_names,
    read_commands,
    read_common_settings,
)
from acoustic.actions.validation import CommandFigures, Validation
from acoustic.actions.validation_options import ValidateOptions
from readers.common.faults import counted
from readers.common.files import require_writable
from readers.common.report import Progress, silent
from readers.config.check import CheckedConfig
from readers.config.config import load_config

FILE_FORMS = ("configfile=", "currentdirectory=")


@dataclass(frozen=True)
class ValidateResult:
    """What a configuration would do, and what is wrong with it.

    Attributes
    ----------
    faults : mapping of str to tuple of str
        By command; "" for those of all commands.
    notes : tuple of str
        Settings that are accepted without effect, which are no faults.
    figures : tuple of CommandFigures
        Of each action of each command.
    summary : str
        Such as "3 faults in 2 files; checked 1 command, 948 utterances".
    """

    faults: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]
    figures: tuple[CommandFigures, ...]
    summary: str


def validate(options: ValidateOptions, *, progress: Progress = silent) -> ValidateResult:
    """Read a configuration and all files that it names, and find every fault, before any work is done.

    Parameters
    ----------
    options : ValidateOptions
    progress : callable
        Called as ``progress(done, total)``.

    Returns
    -------
    ValidateResult

    Raises
    ------
    ConfigError, OSError
        For a configuration that cannot be read.

    Examples
    --------
    ``validate(ValidateOptions(files="timit.cntk", settings=["command=TIMIT_Train"])).faults``
    """
    first = options.files if options.files.lower().startswith(FILE_FORMS) else f"configFile={options.files}"
    config = load_config([first, *options.settings], CheckedConfig)
    findings = config.findings
    for warning in config.warnings:
        findings.add(warning)
    commands = config.check(lambda: read_commands(config)) or ()
    common = _check_top(config, commands)
    validation = Validation(config, common, not options.quick, progress)
    figures = [figure for command in commands for figure in validation.check(command)]
    validation.finish()
    for message in [*config.without_effect(commands, ALIKE), *config.misspelled(TOP_NAMES, ALIKE)]:
        findings.add(message)
    return ValidateResult(
        {group: tuple(faults) for group, faults in findings.faults.items()},
        tuple(dict.fromkeys([*old_names(config), *validation.notes])),
        tuple(figures),
        f"{findings.summary()}; checked {_extent(figures)}",
    )


def _extent(figures: Sequence[CommandFigures]) -> str:
    """Return how much was checked, such as `2 commands, 948 utterances`; shared utterances count once."""
    readers = [reader for command in figures for reader in command.readers.values()]
    keys = {key for reader in readers for key in reader.keys}
    numbers = {"utterance": len(keys), "record": 0}
    for reader in readers:
        numbers[reader.unit.rstrip("s")] += 0 if reader.keys else reader.num_usable
    parts = [counted(len({command.command for command in figures}), "command")]
    return ", ".join(parts + [counted(number, unit) for unit, number in numbers.items() if number])


def _check_top(config: CheckedConfig, commands: Sequence[str]) -> CommonSettings:
    """Check the settings outside of all commands; return them, with their defaults if they are invalid."""
    common = config.check(lambda: read_common_settings(config)) or CommonSettings()
    config.check(lambda: config.bool("makeMode", True))
    config.check(lambda: config.bool("extendTraining", False))
    config.check(lambda: _check_log(config, commands))
    return common


def _check_log(config: CheckedConfig, commands: Sequence[str]) -> None:
    """Check that the log file named by `stderr` can be written."""
    prefix = TopOptions.from_block(config).log
    if prefix:
        require_writable(f"{prefix.replace(chr(92), '/')}_{'_'.join(commands)}.log")
