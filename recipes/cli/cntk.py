"""Train, test or evaluate a computational network with a configuration file.

worked example: train the network that the block TIMIT_Train describes, then test it
  cntk configFile=timit.cntk+mine.cntk command=TIMIT_Train:TIMIT_Test TIMIT_Train=[SGD=[maxEpochs=5]]

  configFile=a+b     configuration files; settings of later files replace those of earlier ones
  name=value         any setting; replaces that of the files
  command=A:B        blocks to run, in this order; the `action` of each is train, test, write, edit, dumpnode, plot, ...
                     (docs/reference/parameters.md lists all actions)
  precision          float (default) or double
  deviceId           auto (default), cpu or -1, or the number of a GPU
  numCPUThreads      cores to use; 0 (default): all, or as in OMP_NUM_THREADS; -1: all but one
  engine             full (default), plain (all optimisations of the engine off), or the optimisations to switch off,
                     as in engine=noTables:noFusion (docs/how_to/training.md); use it to find out whether a wrong result
                     comes from the engine
  randomSeed         seed of initial weights, order of the data and dropout (default 0)
  traceLevel         0 (default): one log line per epoch; 1: also one every few minibatches
  stderr             prefix of the log file: the names of the commands and .log are appended
  --scheduler A      address of the Dask scheduler that runs the jobs of a parallelTrain (docs/how_to/parallel.md)
  --extension F.py   a Python file with readers, writers or node types that the configuration uses
  --allow-commands   run the command of renderCmd (action=plot), which is otherwise not run
  --version          print the version
  doneFile           file to write when all commands have finished
  makeMode           true (default): continue a training where it stopped; false: start it again
  extendTraining     true: continue a finished training if maxEpochs is larger now (default false)

A training with modelPath=MODEL writes one model per epoch and, beside them, a checkpoint, MODEL.history.jsonl,
MODEL.png (criterion and error of each epoch), MODEL.config (the configuration it used) and MODEL.COMMAND.report (the
utterances that were left out).  Exit status: 0 success, 1 some utterances were left out, 2 the command could not
run, 130, 143 or 129 stopped by Ctrl-C, SIGTERM or SIGHUP: finished epochs are kept.
"""

import contextlib
import importlib.util
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TextIO

from readers.common.environment import available_cores, using_cores
from readers.common.files import atomic_write, require_writable
from readers.common.text import is_count
from readers.config.config import Config
from readers.config.options import Options, option
from readers.config.values import did_you_mean
from readers.errors import ConfigError
from recipes.cli.console import loss_lines, one_line, print_note, progress_display, run_guarded
from recipes.cli.extensions import take_extensions
from recipes.cli.parser import print_version

BANNER = "#" * 46
ALLOW_COMMANDS = "--allow-commands"
OPTIONS = ("--help", "--version", "--scheduler", "--extension", ALLOW_COMMANDS)


@dataclass(frozen=True, kw_only=True)
class TopOptions(Options):
    """What stands outside of all blocks of a configuration."""

    commands: tuple[str, ...] = option(
        ("train",), "blocks to run, in this order", cntk="command", expected="the name of a block"
    )
    precision: Literal["float", "double"] = option("float", "numbers of networks: of 32 or 64 bits")
    old_precision: Literal["float", "double"] | None = option(
        None, "older name of {precision}, which it replaces", cntk="type"
    )
    device: str = option("auto", "auto for a GPU if there is one, cpu or -1, or the number of a GPU", cntk="deviceId")
    threads: int = option(
        0, "cores to use; 0: all, or as in OMP_NUM_THREADS; -1: all but one", unit="cores", cntk="numCPUThreads"
    )
    seed: int = option(
        0, "seed of initial weights, order of the data and dropout", least=0, most=math.inf, cntk="randomSeed"
    )
    log: str = option("", "prefix of the log file, before the names of the commands and .log", cntk="stderr")
    done_file: str = option("", "file to write when all commands have finished")
    engine: tuple[str, ...] = option(
        (), "full, plain (all optimisations of the engine off), or the optimisations to switch off; by default that of "
        "the environment variable ARGONAUT_ENGINE, or full",
    )  # fmt: skip


# Settings of commands that often stand outside of all blocks.
OF_COMMANDS = ("traceLevel", "makeMode", "extendTraining", "modelPath", "ndlMacros", "scheduler")
TOP_NAMES = (*TopOptions.option_keys(), *OF_COMMANDS)  # a similar name gives a warning
ALIKE = 0.75
ALIKE_IN_COMMAND = 0.9  # stricter, because blocks often contain names of the user's own


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    if not argv or any(argument in ("-h", "--help") for argument in argv):
        print("usage: cntk configFile=FILE[+FILE...] [name=value ...]\n\n" + __doc__)
        return 0 if argv else 2
    if "--version" in argv:
        return print_version("cntk")
    return run_guarded(run, argv)


def run(argv: list[str]) -> int:
    """Run the commands of a configuration and return the exit status."""
    from acoustic.actions import make_action
    from acoustic.actions.base import CommandOptions
    from readers.config.config import AskedConfig, load_config

    argv = take_extensions(argv)
    allowed = ALLOW_COMMANDS in argv
    config = load_config(settings([argument for argument in argv if argument != ALLOW_COMMANDS]), AskedConfig)
    commands, options = read_commands(config), TopOptions.from_block(config)
    with open_log(options.log, commands) as log, engines(config, options):
        for warning in [*config.warnings, *config.misspelled(TOP_NAMES, ALIKE)]:
            log(f"warning: {warning}")
        done = done_file(options.done_file)
        common = replace(read_common_settings(config), allows_commands=allowed)
        # Construct, and thereby check, all actions before the first one starts.
        actions = {}
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
            log(f"note: {note}")
        for command in dict.fromkeys(commands):
            for warning in config.block(command).misspelled(config.asked.values(), ALIKE_IN_COMMAND):
                log(f"warning: {warning}")
        for warning in config.without_effect(commands, ALIKE):  # last, because it reads all blocks
            log(f"warning: {warning}")
        with cpu_threads(options.threads):
            statuses = [run_action(log, title, action) for title, action in actions.items()]
        if done is not None and max(statuses) < 2:
            with atomic_write(done, "w") as file:
                file.write(f"{'_'.join(commands)} finished at {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
        log.closing("COMPLETED.")
    return max(statuses)


def engines(config: Config, options: TopOptions) -> contextlib.AbstractContextManager:
    """Return a context in which networks run with the optimisations that `engine` names.  Raises ConfigError."""
    from acoustic.runtime.engine_options import EngineOptions, engine_text, engines_with

    text = ":".join(options.engine) or engine_text()
    EngineOptions.from_text(text, str(config.where("engine")))
    return engines_with(text)


def read_commands(config: Config) -> tuple[str, ...]:
    """Return the blocks to run: those that `command` names, else `train`.  Raises ConfigError if there is neither."""
    commands = TopOptions.from_block(config).commands
    if not config.has("command") and not config.has(commands[0]):
        blocks = config.block_names()
        raise ConfigError(
            f"{config.where('command')}: neither `command` nor a block `train`; expected command=BLOCK"
            + (f", for instance command={blocks[0]}" if blocks else " and that block, or configFile=FILE with both")
            + "".join(f"; {warning}" for warning in config.misspelled(TOP_NAMES, ALIKE))
        )
    return commands


def settings(argv: list[str]) -> list[str]:
    """Replace `--scheduler A` and `--scheduler=A` in the arguments by `scheduler=A`.

    Raises ConfigError for other options.
    """
    left, found = list(argv), []
    while left:
        argument = left.pop(0)
        if argument == "--scheduler":
            if not left:
                raise ConfigError("--scheduler: nothing follows; expected the address of a Dask scheduler")
            argument = f"scheduler={left.pop(0)}"
        argument = argument.removeprefix("--") if argument.startswith("--scheduler=") else argument
        if argument.startswith("-"):
            hint = did_you_mean(argument.partition("=")[0], OPTIONS) or "; expected name=value"
            raise ConfigError(f"command line: {argument}: no such option{hint}; cntk --help shows the options")
        found.append(argument)
    return found


def done_file(name: str) -> Path | None:
    """Return the path of `doneFile`, after removing the file of an earlier run; None for an empty name."""
    if not name:
        return None
    path = Path(name)
    require_writable(path)
    path.unlink(missing_ok=True)
    return path


class Log:
    """Write log lines to stderr, or to the file that `stderr=` names."""

    def __init__(self, file: TextIO | None):
        self.file = file

    def __call__(self, line: str) -> None:
        if self.file is None:
            print_note(line)
        else:
            print(line, file=self.file, flush=True)

    def closing(self, line: str) -> None:
        """Write a line that appears on the terminal even if there is a log file."""
        self(line)
        if self.file is not None:
            print(line, file=sys.stderr)


@contextlib.contextmanager
def open_log(prefix: str, commands: Sequence[str]) -> Iterator[Log]:
    """Open the log of a run.  An error that ends the run is written to the log file, too."""
    if not prefix:
        yield Log(None)
        return
    path = Path(f"{prefix.replace(chr(92), '/')}_{'_'.join(commands)}.log")
    require_writable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        print(f"log: {path}", file=sys.stderr)
        try:
            yield Log(file)
        except Exception as fault:
            print(f"error: {one_line(fault)}", file=file)
            raise


def run_action(log: Log, title: str, action) -> int:
    """Run one action, write its losses to a file beside the model, and return its exit status."""
    for warning in action.misspelled():
        log(f"warning: {warning}")
    if action.trace_level > 0:
        log(f"{BANNER}\n# {title}\n{BANNER}")
    started = time.monotonic()
    try:
        with progress_display(title, "done") as progress:
            report = action.run(log, progress)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(*going_on(title, action)) from stop
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
    return report.exit_status


def going_on(title: str, action) -> list[str]:
    """Return the lines that tell the user how to continue an interrupted training; empty for other actions."""
    from acoustic.actions.train import Train

    if not isinstance(action, Train):
        return []
    again = "the same command" if action.make_mode else "the same command with makeMode=true"
    return [f"{title}: finished epochs are kept; {again} continues after them"]


def read_common_settings(config: Config):
    """Read precision, device and seed from the top level of the configuration.  Raises ConfigError."""
    from acoustic.actions import CommonSettings

    options = TopOptions.from_block(config)
    return CommonSettings(
        precision=options.old_precision or options.precision,
        device=read_device(config, options.device.lower()),
        seed=options.seed,
        stdout=sys.stdout,
    )


def old_names(config: Config) -> list[str]:
    """Return a note for each setting outside of the commands that has an old name."""
    if not config.has("type"):
        return []
    replaced = f", and replaces precision={config.text('precision')}" if config.has("precision") else ""
    return [f"{config.where('type')}: type is the old name of precision{replaced}"]


def read_device(config: Config, name: str) -> str:
    """Return the device that `deviceId` names, in the form that networks use."""
    if name in ("cpu", "-1"):
        return "cpu"
    if name == "auto":
        return "gpu" if num_gpus() else "cpu"
    if not is_count(name):
        where = config.where("deviceId")
        raise ConfigError(f"{where}: deviceId is {name[:40]}; expected auto, cpu, -1 or a GPU's number")
    found = num_gpus()
    if int(name) >= found:
        raise ConfigError(
            f"{config.where('deviceId')}: deviceId is {name}, but {found} GPUs are usable; expected deviceId=-1 "
            "for the CPU, or a CUDA device and `pip install '.[gpu]'` in the project's directory"
        )
    return f"gpu:{name}"


def num_gpus() -> int:
    """Return the number of usable GPUs; 0 without cupy."""
    if importlib.util.find_spec("cupy") is None:
        return 0
    import cupy

    try:
        return cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


@contextlib.contextmanager
def cpu_threads(count: int) -> Iterator[int | None]:
    """Use at most `count` cores (`numCPUThreads`) in the body; yields their number, None for no limit."""
    if count == 0:
        yield None
        return
    threads = min(count, available_cores()) if count > 0 else max(1, available_cores() + count)
    with using_cores(threads):
        yield threads


if __name__ == "__main__":
    sys.exit(main())
