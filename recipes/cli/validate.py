"""Read a configuration of `cntk` and all files that it names, and list every fault, before any work is done.

worked example:
  argonaut validate timit.cntk+mine.cntk command=TIMIT_Train
prints
  TIMIT_Train
    mine.cntk:12: TIMIT_Train.SGD.maxEpoch is not known here; did you mean maxEpochs
    lists/train.scp:817: no labels in labels/train.mlf; expected an entry 'fcjf0-sx37'
    lists/train.scp:902: frames [0,411] of feat/fdaw0-si1406.fbank, which has 398; expected a last frame of at most 397
  3 faults in 2 files; checked 1 command, 948 utterances

It checks options (unknown, misspelled, out of range), lists and label files (malformed lines, repeated names, missing
files, different order of utterances), headers and values of features, lengths of labels against features, states
against state lists, dimensions of networks against readers, models against data, and whether outputs can be written.
Notes on settings that are accepted without effect are no faults.
A bundle is checked, too: argonaut validate an4.argo compares its checksums and puts its parts together.

-v also prints what a run would do.  Exit status: 0 no fault, 1 some faults, 2 the configuration could not be read.
"""

import argparse
import sys

from readers.errors import ConfigError

MIXED = True  # options are allowed between the settings
FILE_FORMS = ("configfile=", "currentdirectory=")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE[+FILE...]", help="configuration files, as for cntk; or a bundle")
    parser.add_argument(
        "settings", nargs="*", default=[], metavar="name=value", help="settings that replace those of the files"
    )
    parser.add_argument("--quick", action="store_true", help="check only the headers of feature files, not the values")


def run(arguments: argparse.Namespace) -> int:
    from decoder.recognizer.bundle import is_bundle

    if is_bundle(arguments.files) or arguments.files.endswith(".argo"):
        if arguments.settings:
            raise ConfigError(f"command line: {arguments.settings[0]} beside a bundle; expected one bundle only")
        return validate_bundle(arguments.files)
    from acoustic.actions.top_level import ALIKE, TOP_NAMES, old_names, read_commands
    from acoustic.actions.validation import Validation
    from readers.config.check import CheckedConfig
    from readers.config.config import load_config
    from recipes.cli.console import progress_display

    config = load_config(command_line(arguments.files, arguments.settings), CheckedConfig)
    findings = config.findings
    for warning in config.warnings:
        findings.add(warning)
    commands = config.check(lambda: read_commands(config)) or []
    common = check_top(config, commands)
    with progress_display("validate") as progress:
        validation = Validation(config, common, not arguments.quick, progress)
        figures = [figure for command in commands for figure in validation.check(command)]
        validation.finish()
    for message in [*config.without_effect(commands, ALIKE), *config.misspelled(TOP_NAMES, ALIKE)]:
        findings.add(message)
    if arguments.verbose:
        for figure in figures:
            print(*figure.lines(), sep="\n")
    for note in dict.fromkeys([*old_names(config), *validation.notes]):
        print(f"note: {note}")
    for group, faults in findings.faults.items():
        print(group or "all commands")
        for fault in faults:
            print(f"  {fault}")
    print(f"{findings.summary()}; checked {extent(figures)}")
    return 1 if len(findings) else 0


def validate_bundle(path: str) -> int:
    """Open a bundle and put its parts together, which checks all of them; raises ArgonautError for a fault."""
    from decoder import Recognizer

    recognizer = Recognizer.load(path)
    recognizer.can_align()
    print(f"{path}: no faults; checked {len(recognizer.bundle.parts)} members and that they fit together")
    return 0


def extent(figures: list) -> str:
    """Return how much was checked, such as `2 commands, 948 utterances`; shared utterances count once."""
    from readers.common.faults import counted

    readers = [reader for command in figures for reader in command.readers.values()]
    keys = {key for reader in readers for key in reader.keys}
    numbers = {"utterance": len(keys), "record": 0}
    for reader in readers:
        numbers[reader.unit.rstrip("s")] += 0 if reader.keys else reader.num_usable
    parts = [counted(len({command.command for command in figures}), "command")]
    return ", ".join(parts + [counted(number, unit) for unit, number in numbers.items() if number])


def command_line(files: str, settings: list[str]) -> list[str]:
    """Return the arguments of cntk; here the first one may be files without `configFile=`."""
    first = files if files.lower().startswith(FILE_FORMS) else f"configFile={files}"
    return [first, *settings]


def check_top(config, commands: list[str]):
    """Check the settings outside of all commands; return them, with their defaults if they are invalid."""
    from acoustic.actions import CommonSettings
    from acoustic.actions.top_level import read_common_settings

    common = config.check(lambda: read_common_settings(config)) or CommonSettings()
    config.check(lambda: config.bool("makeMode", True))
    config.check(lambda: config.bool("extendTraining", False))
    config.check(lambda: log_file(config, commands))
    return common


def log_file(config, commands: list[str]) -> None:
    """Check that the log file named by `stderr` can be written."""
    from acoustic.actions.top_level import TopOptions
    from readers.common.files import require_writable

    prefix = TopOptions.from_block(config).log
    if prefix:
        require_writable(f"{prefix.replace(chr(92), '/')}_{'_'.join(commands)}.log")


if __name__ == "__main__":
    sys.exit("expected: argonaut validate FILE")
