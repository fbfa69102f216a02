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

import sys
from typing import TYPE_CHECKING

from readers.config.values import did_you_mean
from readers.errors import ConfigError
from recipes.cli.command import Command, Console
from recipes.cli.console import print_note, run_guarded
from recipes.cli.extensions import take_extensions
from recipes.cli.parser import print_version

if TYPE_CHECKING:
    from acoustic.actions.config_job import ConfigOptions

ALLOW_COMMANDS = "--allow-commands"
OPTIONS = ("--help", "--version", "--scheduler", "--extension", ALLOW_COMMANDS)


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    if not argv or any(argument in ("-h", "--help") for argument in argv):
        print("usage: cntk configFile=FILE[+FILE...] [name=value ...]\n\n" + __doc__)
        return 0 if argv else 2
    if "--version" in argv:
        return print_version("cntk")
    return run_guarded(run, argv)


def run(argv: list[str]) -> int:
    return run_options(config_options(take_extensions(argv)), Console("cntk"))


def run_options(options: "ConfigOptions", console: Console) -> int:
    """Run the commands of a configuration and return the exit status."""
    from acoustic.actions.config_job import run_config

    with console.progress() as progress:
        return run_config(options, progress=progress, log=print_note, stdout=sys.stdout).exit_status


def config_options(argv: list[str]) -> "ConfigOptions":
    """Return the options that a command line gives: the files that it begins with, and settings.

    `--scheduler A` and `--scheduler=A` are the setting `scheduler=A`.  Raises ConfigError for other options.
    """
    from acoustic.actions.config_job import ConfigOptions

    unread = [argument for argument in argv if argument != ALLOW_COMMANDS]
    settings: list[str] = []
    while unread:
        argument = unread.pop(0)
        if argument == "--scheduler":
            if not unread:
                raise ConfigError("--scheduler: nothing follows; expected the address of a Dask scheduler")
            argument = f"scheduler={unread.pop(0)}"
        argument = argument.removeprefix("--") if argument.startswith("--scheduler=") else argument
        if argument.startswith("-"):
            hint = did_you_mean(argument.partition("=")[0], OPTIONS) or "; expected name=value"
            raise ConfigError(f"command line: {argument}: no such option{hint}; cntk --help shows the options")
        settings.append(argument)
    files: list[str] = []
    if settings and settings[0].startswith("configFile="):
        files = settings.pop(0).partition("=")[2].split("+")
    return ConfigOptions(files=tuple(files), settings=tuple(settings), allows_commands=ALLOW_COMMANDS in argv)


COMMAND = Command("cntk", run=run_options)  # without declared options, as settings are given like those of a file


if __name__ == "__main__":
    sys.exit(main())
