"""Runs the commands of a configuration."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TextIO

from acoustic.actions.base import Action, CommandOptions, make_action
from acoustic.actions.top_level import (
    ALIKE,
    ALIKE_IN_COMMAND,
    TOP_NAMES,
    TopOptions,
    old_names,
    read_commands,
    read_common_settings,
)
from acoustic.runtime.engine_options import EngineOptions, engine_text, engines_with
from readers.common.environment import available_cores, using_cores
from readers.common.faults import one_line
from readers.common.files import require_writable, write_lines
from readers.common.jobs.stop_signals import epochs_kept
from readers.common.report import Log, Progress, RunReport, loss_lines, silent
from readers.config.config import AskedConfig, Config, load_config
from readers.config.options import Options, given, option

BANNER = "#" * 46


@dataclass(frozen=True, kw_only=True)
class ConfigOptions(Options):
    """The configuration whose commands are run.

    For example, `ConfigOptions(files="timit.cntk", settings=["command=TIMIT_Train", "traceLevel=1"])`.
    """

    files: tuple[str, ...] = given((), "configuration files; settings of later ones replace those of earlier ones")
    settings: tuple[str, ...] = given((), "lines `name=value` or blocks, which replace settings of the files")
    allows_commands: bool = option(
        False,
        "run the command of renderCmd (action=plot), which is otherwise not run",
        flag="--allow-commands",
        cntk=None,
    )

    @property
    def arguments(self) -> list[str]:
        """The settings of all, as readers.config.load_config takes them."""
        return [*([f"configFile={'+'.join(self.files)}"] if self.files else []), *self.settings]

    def to_flags(self) -> list[str]:
        """Return the words of the command line of `cntk`."""
        return [*self.arguments, *super().to_flags()]


@dataclass(frozen=True)
class ConfigResult:
    """What the commands of a configuration did.

    Attributes
    ----------
    reports : dict of str to RunReport
        By command; by `command-action` for a command of several actions.
    """

    reports: dict[str, RunReport] = field(default_factory=dict)

    @property
    def exit_status(self) -> int:
        """The highest of the commands: 0 success, 1 some utterances were left out, 2 a command could do nothing."""
        return max((report.exit_status for report in self.reports.values()), default=0)


def run_config(
    options: ConfigOptions, *, progress: Progress = silent, log: Log = silent, stdout: TextIO | None = None
) -> ConfigResult:
    """Run the commands of a configuration: train, test, write and edit networks.

    Parameters
    ----------
    options : ConfigOptions
    progress : callable
        Called as ``progress(frames done, frames, stage=command, **figures)``.
    log : callable
        Receives the lines of the log; with `stderr` in the configuration, which names a file for them, the last ones.
    stdout : text file, optional
        Where action write puts the text if outputPath is ``-``.

    Returns
    -------
    ConfigResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in the configuration before the first command starts, and for one that ends a command.

    Examples
    --------
    ``run_config(ConfigOptions(files="timit.cntk", settings="command=TIMIT_Train")).exit_status``
    """
    config = load_config(options.arguments, AskedConfig)
    commands = read_commands(config)
    top = TopOptions.from_block(config)
    with _open_log(top.log, commands, log) as lines, _engines(config, top):
        for warning in [*config.warnings, *config.misspelled(TOP_NAMES, ALIKE)]:
            lines(f"warning: {warning}")
        done_file = _done_file(top.done_file)
        common = replace(read_common_settings(config), allows_commands=options.allows_commands, stdout=stdout)
        # Construct, and thereby check, all actions before the first one starts.
        actions: dict[str, Action] = {}
        for command in commands:
            block = config.block(command)
            names = CommandOptions.from_block(block).actions
            for name in names:
                title = command if len(names) == 1 else f"{command}-{name}"
                actions[title] = make_action(name, block, common)
                common = replace(common, made=(*common.made, *actions[title].makes()))
        for action in actions.values():
            action.require_files()
        notes = [note for action in actions.values() for note in action.notes()]
        for note in dict.fromkeys([*old_names(config), *notes]):
            lines(f"note: {note}")
        for command in dict.fromkeys(commands):
            for warning in config.block(command).misspelled(config.asked.values(), ALIKE_IN_COMMAND):
                lines(f"warning: {warning}")
        for warning in config.without_effect(commands, ALIKE):  # last, because it reads all blocks
            lines(f"warning: {warning}")
        with cpu_threads(top.threads):
            result = ConfigResult(
                {title: _run_action(lines, title, action, progress) for title, action in actions.items()}
            )
        if done_file is not None and result.exit_status < 2:
            write_lines(done_file, [f"{'_'.join(commands)} finished at {time.strftime('%Y-%m-%d %H:%M:%S')}"])
        lines.closing("COMPLETED.")
    return result


def _engines(config: Config, options: TopOptions) -> contextlib.AbstractContextManager[object]:
    """Return a context in which networks run with the optimisations that `engine` names.  Raises ConfigError."""
    text = ":".join(options.engine) or engine_text()
    EngineOptions.from_text(text, str(config.where("engine")))
    return engines_with(text)


def _done_file(name: str) -> Path | None:
    """Return the path of `doneFile`, after removing the file of an earlier run; None for an empty name."""
    if not name:
        return None
    path = Path(name)
    require_writable(path)
    path.unlink(missing_ok=True)
    return path


class _Lines:
    """Takes the lines of a log, for the file that `stderr` names if there is one."""

    def __init__(self, log: Log, file: TextIO | None = None):
        self.log = log
        self.file = file

    def __call__(self, line: str) -> None:
        if self.file is None:
            self.log(line)
        else:
            print(line, file=self.file, flush=True)

    def closing(self, line: str) -> None:
        """Take a line that is also shown if there is a file."""
        self(line)
        if self.file is not None:
            self.log(line)


@contextlib.contextmanager
def _open_log(prefix: str, commands: Sequence[str], log: Log) -> Iterator[_Lines]:
    """Open the log of a run.  An error that ends the run is written to the log file, too."""
    if not prefix:
        yield _Lines(log)
        return
    path = Path(f"{prefix.replace(chr(92), '/')}_{'_'.join(commands)}.log")
    require_writable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        log(f"log: {path}")
        try:
            yield _Lines(log, file)
        except Exception as fault:
            print(f"error: {one_line(fault)}", file=file)
            raise


def _run_action(log: _Lines, title: str, action: Action, progress: Progress) -> RunReport:
    """Run one action, and write its losses to a file beside the model."""
    for warning in action.misspelled():
        log(f"warning: {warning}")
    if action.trace_level > 0:
        log(f"{BANNER}\n# {title}\n{BANNER}")
    started = time.monotonic()
    with _going_on(title, action):
        report = action.run(log, partial(progress, stage=title, unit="done"))
    if action.trace_level > 0:
        log(f"{title}: {time.monotonic() - started:.1f} seconds")
    where = ""
    # If there was nothing to do, keep the report of an earlier run.
    if action.keeps_report and action.model_path is not None and (report.num_done or report.lost):
        path = action.model_path.with_name(f"{action.model_path.name}.{title}.report")
        report.write(path)
        for line in loss_lines(report, path):
            log.closing(line)
        where = f", named in {path}" if report.lost else ""
    log.closing(report.summary() + where)
    return report


def _going_on(title: str, action: Action) -> contextlib.AbstractContextManager[None]:
    """Return a context that tells the user how to continue an interrupted training; nothing for other actions."""
    from acoustic.actions.train import Train

    if not isinstance(action, Train):
        return contextlib.nullcontext()
    return epochs_kept(f"{title}: ", "the same command" if action.make_mode else "the same command with makeMode=true")


@contextlib.contextmanager
def cpu_threads(count: int) -> Iterator[int | None]:
    """Use at most `count` cores (`numCPUThreads`) in the body; yields their number, None for no limit."""
    if count == 0:
        yield None
        return
    threads = min(count, available_cores()) if count > 0 else max(1, available_cores() + count)
    with using_cores(threads):
        yield threads
