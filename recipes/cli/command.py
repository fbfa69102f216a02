"""Commands made from declared options: their flags, and what they share while they run."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from readers.common.report import Progress, RunReport
from readers.config.options import Options, given, option
from recipes.cli.console import progress_display, show_losses
from recipes.cli.flags import add_flags, options_from
from recipes.cli.machines import open_cluster, open_processes, scheduler_address
from recipes.cli.parser import Parser

Machines = Literal["", "threads", "processes", "cores", "list"]


@dataclass(frozen=True, kw_only=True)
class MachineOptions(Options):
    """Where a command works: in threads, in processes or on a Dask cluster."""

    workers: int | None = option(None, "number of threads (default: one per core)", flag="-j --workers", least=1)
    scheduler: str | None = option(
        None,
        "divide the work among the workers of a Dask scheduler: tcp://HOST:PORT, or the file that `dask scheduler "
        "--scheduler-file` wrote; the workers must see the same files",
        metavar="ADDRESS",
        parse=scheduler_address,
    )
    unit: str = given("threads")

    def __post_init__(self) -> None:
        super().__post_init__()
        is_single = self.workers is None or self.scheduler is None
        self.require("workers", is_single, "is given with {scheduler}; expected only one of them")


@dataclass(frozen=True, kw_only=True)
class ProcessOptions(MachineOptions):
    """Where a command works: in processes, one by default, or on a Dask cluster."""

    workers: int | None = option(None, "number of processes (default: 1)", flag="-j --workers", least=1)
    unit: str = given("processes")


@dataclass(frozen=True, kw_only=True)
class CoreOptions(ProcessOptions):
    """Where a command works: in processes, one per core by default, or on a Dask cluster."""

    workers: int | None = option(None, "number of processes (default: one per core)", flag="-j --workers", least=1)


@dataclass(frozen=True, kw_only=True)
class ListOptions(ProcessOptions):
    """Where a command works on a list: in threads of its own, in processes or on a Dask cluster."""

    workers: int | None = option(
        None,
        "divide the list among N processes, which share the cores of --threads (default: threads of one process)",
        flag="--workers",
        least=1,
    )


@dataclass(frozen=True)
class NoOptions(Options):
    """Options of a command that has none, or only actions."""


MACHINES: Mapping[str, type[MachineOptions]] = {
    "threads": MachineOptions,
    "processes": ProcessOptions,
    "cores": CoreOptions,
    "list": ListOptions,
}


@dataclass(frozen=True)
class Console:
    """What a command shows, and where its work is done.

    Parameters
    ----------
    title : str
        Name of the command, for progress.
    verbose : int
        How often -v was given.
    machines : MachineOptions
    json : bool
        Whether --json was given.
    """

    title: str
    verbose: int = 0
    machines: MachineOptions = field(default_factory=MachineOptions)
    json: bool = False

    @contextlib.contextmanager
    def runner(self, open_here: Callable[[int | None], Any] | None = None) -> Iterator[Any]:
        """Yield the Runner that -j and --scheduler ask for, and close it.

        open_here: returns a Runner on this machine, given the number of -j, in place of the usual ones.
        """
        from readers.common.jobs.runner import thread_runner

        machines = self.machines
        if machines.scheduler:
            runner = open_cluster(machines.scheduler)
        elif open_here:
            runner = open_here(machines.workers)
        elif machines.unit == "processes":
            runner = open_processes(machines.workers or 1)
        else:
            runner = thread_runner(machines.workers)
        with contextlib.closing(runner):
            yield runner

    @contextlib.contextmanager
    def progress(self, unit: str = "utterances", runner: Any = None) -> Iterator[Progress]:
        """Yield a function `progress(done, total, stage="", unit=..., **figures)` for a job.

        Each stage has its own display, which counts in the unit of its first call.
        """
        with contextlib.ExitStack() as display:
            shown: dict[str, Progress] = {}  # the display of the stage that runs

            def progress(done: int, total: int | None, *, stage: str = "", unit: str = unit, **figures: Any) -> None:
                if stage not in shown:
                    display.close()
                    shown.clear()
                    shown[stage] = display.enter_context(progress_display(stage or self.title, unit, runner))
                shown[stage](done, total, **figures)

            yield progress

    def log(self, line: str) -> None:
        """Print a line about the work."""
        print(line, flush=True)

    def tell(self, line: str) -> None:
        """Print a line on standard error."""
        print(line, file=sys.stderr, flush=True)

    def note(self, line: str) -> None:
        """Print a note on standard error."""
        self.tell(f"note: {line}")

    def finish(self, report: RunReport, path: str | Path, *lines: str, where: object = "") -> int:
        """Show what was lost, print the summary and the closing lines; return the exit status.

        path: the file of the report, which the job has written; where: the input that the run was about.
        If nothing at all could be done, there is no summary.
        """
        show_losses(report, path, self.verbose, where)
        if report.num_done or not report.lost:
            for line in (report.summary(), *lines):
                print(line)
        return report.exit_status


def add_verbose(parser: argparse.ArgumentParser, default: int | str = 0) -> None:
    """Add -v to the parser of a command or of an action."""
    parser.add_argument("-v", "--verbose", action="count", default=default, help="print more details")


@dataclass(frozen=True)
class Command:
    """A command: its options and the function that calls the job, or its actions, such as those of `argonaut lm`.

    Parameters
    ----------
    name : str
    options : type of Options
    run : callable
        Takes the options and a Console, and returns the exit status.
    machines : str
        What -j counts: threads, processes, or processes of which there is one per core by default ("cores"); with
        "list" there is --workers instead; "" without -j and --scheduler.
    mixed : bool
        Whether options may stand between positional arguments.
    epilog : str
        End of the help.
    help : str
        What an action does, as in "estimate an n-gram model".
    description : str
        Begin of the help of an action, if it has more to say than `help`.
    json : str
        What --json prints; "" without --json.
    actions : tuple of Command
        Instead of options and run.
    metavar : str
        What an action is called.
    """

    name: str
    options: type[Options] = NoOptions
    run: Callable[[Any, Console], int] = lambda options, console: 0
    machines: Machines = ""
    mixed: bool = False
    epilog: str = ""
    help: str = ""
    description: str = ""
    json: str = ""
    actions: "tuple[Command, ...]" = ()
    metavar: str = "ACTION"

    def add_arguments(self, parser: Parser) -> None:
        """Add the flags or the actions of the command to a parser."""
        parser.epilog = self.epilog or None
        if self.actions:
            parsers = parser.add_subparsers(metavar=self.metavar, required=True)
            for action in self.actions:
                title = f"{action.help[:1].upper()}{action.help[1:]}."
                description = action.description or f"{title}  `argonaut {self.name} --help` shows worked examples."
                form = argparse.RawDescriptionHelpFormatter if action.description else argparse.HelpFormatter
                action_parser = parsers.add_parser(
                    action.name, help=action.help, description=description, formatter_class=form
                )
                action_parser.set_defaults(action=action)
                add_verbose(action_parser, argparse.SUPPRESS)  # a number would replace that of -v before the action
                action.add_arguments(action_parser)
        add_flags(parser, self.options)
        if self.json:
            parser.add_argument("--json", action="store_true", help=self.json)
        if self.machines:
            add_flags(parser.add_argument_group("machines"), MACHINES[self.machines], "machines.")

    def __call__(self, arguments: argparse.Namespace, parent: str = "") -> int:
        """Run the command, or its action, with parsed arguments, and return the exit status.

        parent: of an action, the name of the command and a blank.
        """
        if self.actions:
            return arguments.action(arguments, f"{self.name} ")
        kind = MACHINES.get(self.machines, MachineOptions)
        machines = options_from(arguments, kind, "machines.")
        console = Console(parent + self.name, arguments.verbose, machines, bool(self.json) and arguments.json)
        options = options_from(arguments, self.options)
        if arguments.verbose:
            flags_given = {name.rpartition(".")[2] for name in vars(arguments)}  # not what other options imply
            for declared, value in options.changed():
                if declared.name in flags_given and not declared.required and declared.flag.startswith("-"):
                    text = " ".join(map(str, value)) if isinstance(value, tuple) else value
                    usual = "" if declared.default is None else f", not {declared.default!r}"
                    print(f"{declared.flag} is {text}{usual}: command line", file=sys.stderr)
        return self.run(options, console)
